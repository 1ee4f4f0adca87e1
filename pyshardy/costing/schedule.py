"""Estimates the time of a program whose collectives overlap kernels.

It uses list scheduling on one stream for kernels and one stream per network. A kernel or collective starts when its
operands are ready and its stream is free; of several, the first in program order. Some compilers cut products and
collectives into pieces. Then a collective starts when the first piece of its product is computed, and a product starts
when the first piece of its operand has arrived. A loop takes all streams, and its rounds do not overlap. A conditional
counts as its slowest branch.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pyshardy.costing.host_memory import HOST_COPIES
from pyshardy.costing.kernels import Kernel, Kernels, has_product
from pyshardy.costing.program import RAGGED, CostKind, OpTraffic
from pyshardy.costing.roofline import Bound, Price, Roofline
from pyshardy.costing.work import CustomCall, custom_call_of

UNKNOWN_ROUNDS = "a loop with an unknown number of rounds counts as one round"
"""A note of `Totals`."""
COMPUTE = -1
"""The stream of kernels; networks are numbered from 0."""

_OF_RAGGED = "a ragged all-to-all counts as if it sent as much to every device; it is known only when it runs"


@dataclass(slots=True)
class Totals:
    """The totals of one run of a block.

    Attributes:
        seconds: The time from start to end.
        serial_seconds: The same without any overlap.
        compute_seconds: The time of all kernels.
        communication_seconds: The time of all collectives.
        host_seconds: The time of all copies to and from the memory of the host.
        host_bytes: The bytes that they copy.
        flops: The floating-point operations.
        transcendentals: The evaluations of functions such as the exponential.
        bytes: The bytes that kernels read and write.
        by_bound: The seconds of kernels by what limits them.
        unknown: The names of ops with an unknown cost, and how often they run.
        calls: The custom calls, with how often they run and the seconds that they take.
        notes: What the figures leave out.
    """

    seconds: float = 0.0
    serial_seconds: float = 0.0
    compute_seconds: float = 0.0
    communication_seconds: float = 0.0
    host_seconds: float = 0.0
    host_bytes: float = 0.0
    flops: float = 0.0
    transcendentals: float = 0.0
    bytes: float = 0.0
    by_bound: dict[Bound, float] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)
    calls: dict[CustomCall, tuple[int, float]] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)

    def add(self, other: Totals, times: int) -> None:
        """Add the totals of something that runs so many times, without the time from start to end."""
        self.serial_seconds += times * other.serial_seconds
        self.compute_seconds += times * other.compute_seconds
        self.communication_seconds += times * other.communication_seconds
        self.host_seconds += times * other.host_seconds
        self.host_bytes += times * other.host_bytes
        self.flops += times * other.flops
        self.transcendentals += times * other.transcendentals
        self.bytes += times * other.bytes
        for bound, seconds in other.by_bound.items():
            self.by_bound[bound] = self.by_bound.get(bound, 0.0) + times * seconds
        for name, count in other.unknown.items():
            self.unknown[name] = self.unknown.get(name, 0) + times * count
        for call, (count, seconds) in other.calls.items():
            self._add_calls(call, times * count, times * seconds)
        self.notes.update(other.notes)

    def _add_calls(self, call: CustomCall, count: int, seconds: float) -> None:
        known = self.calls.get(call, (0, 0.0))
        self.calls[call] = known[0] + count, known[1] + seconds

    def add_price(self, price: Price, kind: CostKind) -> None:
        """Add one run of a kernel whose last op is of this kind."""
        self.serial_seconds += price.seconds
        self.compute_seconds += price.seconds
        self.flops += price.flops
        self.transcendentals += price.transcendentals
        self.bytes += price.bytes
        self.by_bound[price.bound] = self.by_bound.get(price.bound, 0.0) + price.seconds
        call = custom_call_of(kind)
        if call is not None:
            self._add_calls(call, 1, price.seconds)
        if not price.is_known:
            name = kind.name if call is None else call.name
            self.unknown[name] = self.unknown.get(name, 0) + 1


class Task(NamedTuple):
    """The use of a stream by one kernel.

    Attributes:
        stream: `COMPUTE`, or a network; None if the kernel takes all streams.
        seconds: The time.
    """

    stream: int | None
    seconds: float


class Scheduler:
    """Schedules the blocks of a program.

    Args:
        roofline: The cost of kernels.
        collective_seconds: Gives the time of a collective.
        network_of: Gives the network that it occupies.
    """

    def __init__(
        self,
        roofline: Roofline,
        collective_seconds: Callable[[OpTraffic], float],
        network_of: Callable[[OpTraffic], int],
    ) -> None:
        self.roofline = roofline
        self.collective_seconds, self.network_of = collective_seconds, network_of

    def block(self, block: Kernels) -> Totals:
        """The totals of one run of a block."""
        totals = Totals()
        tasks = [self._task(kernel, totals) for kernel in block.kernels]
        totals.seconds = makespan(block.kernels, tasks, self._overlaps(block.kernels, tasks))
        return totals

    def kernel(self, kernel: Kernel) -> float:
        """The seconds that a kernel takes alone."""
        return self._task(kernel, Totals()).seconds

    def started(self, block: Kernels) -> list[tuple[Kernel, Task, float]]:
        """The kernels of a block with the streams that they use, and when they start."""
        tasks = [self._task(kernel, Totals()) for kernel in block.kernels]
        streams = _streams(block.kernels, tasks, self._overlaps(block.kernels, tasks))
        streams.run()
        return list(zip(block.kernels, tasks, streams.starts))

    def _overlaps(self, kernels: Sequence[Kernel], tasks: Sequence[Task]) -> dict[tuple[int, int], float]:
        """The time by which a collective may start before the end of the product that it sends, and the reverse."""
        found: dict[tuple[int, int], float] = {}
        if not self.roofline.hardware.overlaps_products:
            return found
        makers = {value: index for index, kernel in enumerate(kernels) for value in kernel.writes}
        for index, kernel in enumerate(kernels):
            for maker in {makers[value] for value in kernel.reads if value in makers}:
                traffic = kernels[maker].root.traffic or kernel.root.traffic
                pair = tasks[maker], tasks[index]
                if traffic is None or {task.stream for task in pair} != {COMPUTE, 0}:
                    continue
                if any(has_product(kernels[one]) for one in (maker, index)):
                    found[maker, index] = min(task.seconds for task in pair) * (1 - 1 / traffic.group_size)
        return found

    def _task(self, kernel: Kernel, totals: Totals) -> Task:
        op = kernel.root
        if op.traffic is not None:
            seconds = self.collective_seconds(op.traffic)
            if op.traffic.kind in HOST_COPIES:
                totals.host_seconds += seconds
                totals.host_bytes += op.traffic.sent_bytes
            else:
                totals.communication_seconds += seconds
            totals.serial_seconds += seconds
            totals.flops += self.roofline.work(op.kind).flops
            if op.traffic.kind == RAGGED:
                totals.notes[_OF_RAGGED] = None
            return Task(self.network_of(op.traffic), seconds)
        if not kernel.inner:
            price = self.roofline.price(kernel)
            totals.add_price(price, op.kind)
            return Task(COMPUTE, price.seconds)
        inside = [self.block(region) for region in kernel.inner]
        if op.is_loop:
            rounds = 1 if op.rounds is None else op.rounds
            if op.rounds is None:
                totals.notes[UNKNOWN_ROUNDS] = None
            totals.add(inside[0], rounds + 1)
            totals.add(inside[1], rounds)
            return Task(None, inside[0].seconds * (rounds + 1) + inside[1].seconds * rounds)
        totals.notes["a conditional counts as its worst branch: the slowest for time, the largest for memory"] = None
        worst = max(inside, key=lambda one: one.seconds)
        totals.add(worst, 1)
        return Task(None, worst.seconds)


def makespan(
    kernels: Sequence[Kernel], tasks: Sequence[Task], overlaps: Mapping[tuple[int, int], float] | None = None
) -> float:
    """The time of several kernels together.

    Args:
        kernels: The kernels, each after those whose results it reads.
        tasks: The stream and the seconds of each.
        overlaps: For a kernel and a reader of its result, the time by which the reader may start before it ends.
    """
    return _streams(kernels, tasks, overlaps or {}).run()


def run_tasks(
    tasks: Sequence[Task], waits_for: Sequence[Collection[int]], overlaps: Mapping[tuple[int, int], float]
) -> float:
    """How long tasks take together.

    Args:
        tasks: The stream and the seconds of each.
        waits_for: Per task the earlier ones that it waits for.
        overlaps: Of a task and one that waits for it, by how much the second may start before the first ends.

    >>> run_tasks([Task(COMPUTE, 2.0), Task(0, 3.0), Task(COMPUTE, 4.0)], [(), (0,), ()], {})
    6.0
    """
    return Streams(tasks, waits_for, overlaps).run()


def _streams(kernels: Sequence[Kernel], tasks: Sequence[Task], overlaps: Mapping[tuple[int, int], float]) -> Streams:
    makers = {value: index for index, kernel in enumerate(kernels) for value in kernel.writes}
    waits_for = [{makers[value] for value in kernel.reads if value in makers} for kernel in kernels]
    return Streams(tasks, waits_for, overlaps)


class Streams:
    """The state of list scheduling; of several tasks that could run, the first starts.

    Args:
        tasks: The stream and the seconds of each.
        waits_for: Per task the others that it waits for.
        overlaps: Of a task and one that waits for it, by how much the second may start before the first ends.

    Attributes:
        starts: When each task starts.
        order: The tasks in the order in which they started.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        waits_for: Sequence[Collection[int]],
        overlaps: Mapping[tuple[int, int], float],
    ) -> None:
        self.tasks, self.overlaps = tasks, overlaps
        self.users: list[list[int]] = [[] for _ in tasks]
        for index, makers in enumerate(waits_for):
            for maker in makers:
                self.users[maker].append(index)
        self.waits = [len(makers) for makers in waits_for]
        self.ready_at, self.starts = [0.0] * len(tasks), [0.0] * len(tasks)
        self.free: dict[int, float] = {COMPUTE: 0.0}
        self.free.update((task.stream, 0.0) for task in tasks if task.stream is not None)
        self.later: dict[int, list[tuple[float, int]]] = {stream: [] for stream in self.free}
        self.now: dict[int, list[tuple[Any, int]]] = {stream: [] for stream in self.free}
        self.order: list[int] = []
        self.end = 0.0

    def run(self) -> float:
        """The time at which all kernels have ended."""
        for index, count in enumerate(self.waits):
            if not count:
                self._ready(index)
        while (found := self._next()) is not None:
            self._start(*found)
        return self.end

    def _ready(self, index: int) -> None:
        stream = self.tasks[index].stream
        heapq.heappush(self.later[COMPUTE if stream is None else stream], (self.ready_at[index], index))

    def key(self, index: int) -> Any:
        """What decides which of several kernels runs first; the smallest does."""
        return index

    def is_stale(self, key: Any, index: int) -> bool:
        """Whether a kernel has another key by now, or has started."""
        return False

    def _next(self) -> tuple[float, int, int] | None:
        """The next kernel with its start and stream; of several, the one with the smallest key."""
        best: tuple[float, Any, int, int] | None = None
        for stream, free in self.free.items():
            later, now = self.later[stream], self.now[stream]
            while later and later[0][0] <= free:
                index = heapq.heappop(later)[1]
                heapq.heappush(now, (self.key(index), index))
            while now and self.is_stale(*now[0]):
                heapq.heappop(now)
            if now:
                found = (free, *now[0], stream)
            elif later:
                found = (later[0][0], self.key(later[0][1]), later[0][1], stream)
            else:
                continue
            if best is None or found < best:
                best = found
        return None if best is None else (best[0], best[2], best[3])

    def _start(self, start: float, index: int, stream: int) -> None:
        if self.now[stream]:
            heapq.heappop(self.now[stream])
        else:
            heapq.heappop(self.later[stream])
        task = self.tasks[index]
        if task.stream is None:
            start = max(start, *self.free.values())
        self.order.append(index)
        done, self.starts[index] = start + task.seconds, start
        for name in self.free if task.stream is None else (stream,):
            self.free[name] = done
        self.end = max(self.end, done)
        for user in self.users[index]:
            self.ready_at[user] = max(self.ready_at[user], done - self.overlaps.get((index, user), 0.0))
            self.waits[user] -= 1
            if not self.waits[user]:
                self._ready(user)
