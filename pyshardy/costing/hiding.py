"""The order in which XLA for GPUs runs kernels so that collectives hide behind them.

Its scheduler goes from the end of a block to its start. Where no collective is under way, it takes one that may end
there. Before that end it puts kernels that may run beside the collective, until they take as long as it does. Then
comes its start. Of several kernels, the one with the longest chain of collectives before it runs last. So a value that
only a collective reads, such as the gradient of a weight, is computed late. Its operands stay in memory until then. Of
kernels with equal chains, the one runs last that adds least to the memory before it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from pyshardy.costing.kernels import Kernel, has_product
from pyshardy.costing.schedule import COMPUTE, Streams, Task

_COLLECTIVES = 0
"""The stream of collectives: one runs at a time, whatever its network."""


class Hidden(NamedTuple):
    """Kernels in another order.

    Attributes:
        kernels: The kernels; a collective is where it starts.
        ends: For the position of each collective, that of the first kernel after its end.
    """

    kernels: list[Kernel]
    ends: dict[int, int]


def is_beside(kernel: Kernel, kinds: Collection[str]) -> bool:
    """Whether a kernel is a collective of one of the kinds that run beside others."""
    return kernel.root.traffic is not None and kernel.root.traffic.kind in kinds


def hidden(
    kernels: Sequence[Kernel],
    seconds: Sequence[float],
    size: Callable[[int], int],
    kinds: Collection[str],
    saved: Collection[int] | None = None,
) -> Hidden:
    """The kernels in an order in which collectives hide behind others, one collective at a time.

    Args:
        kernels: The kernels in another order in which they may run; of kernels with equal chains of collectives before
            them, the later one stays later.
        seconds: How long each of them takes.
        size: Gives the bytes of a value.
        kinds: The kinds of collectives that run beside kernels; others take their turn as kernels do.
        saved: The values whose memory decides which kernel runs next; by default the order of the kernels does.
    """
    beside = [is_beside(kernel, kinds) for kernel in kernels]
    makers = {value: at for at, kernel in enumerate(kernels) for value in kernel.writes}
    before = [{makers[value] for value in kernel.needs if value in makers} for kernel in kernels]
    chains = _chains(kernels, [time if is_one else 0.0 for time, is_one in zip(seconds, beside)], before)
    leaders = _leaders(kernels, before, size)
    followers: dict[int, list[int]] = {}
    for at, leader in enumerate(leaders):
        if leader != at:
            followers.setdefault(leader, []).append(at)
    backwards = sorted((at for at, leader in enumerate(leaders) if leader == at), key=lambda at: (-chains[at], -at))
    readers = _readers(backwards, leaders, before)
    tasks = [Task(_COLLECTIVES if beside[at] else COMPUTE, seconds[at]) for at in backwards]
    if saved is None:
        streams = Streams(tasks, readers, {})
    else:
        moves = _moves(kernels, backwards, followers, size, saved)
        streams = _Backwards(tasks, readers, [chains[at] for at in backwards], moves)
    streams.run()
    # Time counts from the end. A kernel is where its time begins; a collective ends there, and starts where it is over.
    moments = [(streams.starts[index], turn, index, False) for turn, index in enumerate(streams.order)]
    moments += [
        (start + tasks[index].seconds, turn, index, True)
        for start, turn, index, _ in moments
        if tasks[index].stream == _COLLECTIVES
    ]
    order: list[Kernel] = []
    begun: dict[int, int] = {}
    ends: dict[int, int] = {}
    for _, _, index, is_start in sorted(moments, reverse=True):
        is_collective, at = tasks[index].stream == _COLLECTIVES, backwards[index]
        if is_start or not is_collective:
            begun[index] = len(order)
            order.append(kernels[at])
        else:
            ends[begun[index]] = len(order)
        if not is_start:
            order += [kernels[one] for one in followers.get(at, ())]
    return Hidden(order, ends)


class _Moves(NamedTuple):
    """The memory of a kernel and its followers, seen from the end.

    Attributes:
        reads: The values that they need before, with their bytes.
        writes: The bytes of the values that exist only after them.
    """

    reads: tuple[tuple[int, int], ...]
    writes: int


def _moves(
    kernels: Sequence[Kernel],
    backwards: Sequence[int],
    followers: Mapping[int, Sequence[int]],
    size: Callable[[int], int],
    saved: Collection[int],
) -> list[_Moves]:
    """The memory that each leader and its followers need."""
    found = []
    for at in backwards:
        members = [kernels[one] for one in (at, *followers.get(at, ()))]
        written = {value for one in members for value in one.writes}
        read = {value for one in members for value in one.reads} - written
        found.append(
            _Moves(
                tuple([(value, size(value)) for value in sorted(read.intersection(saved))]),
                sum(map(size, written.intersection(saved))),
            )
        )
    return found


class _Backwards(Streams):
    """From the end to the start: of kernels with equal chains of collectives, first the one that needs least memory."""

    def __init__(
        self, tasks: Sequence[Task], waits_for: Sequence[set[int]], chains: Sequence[float], moves: Sequence[_Moves]
    ) -> None:
        super().__init__(tasks, waits_for, {})
        self.chains, self.moves = chains, moves
        self.more = [sum(bytes for _, bytes in one.reads) - one.writes for one in moves]
        self.readers: dict[int, list[int]] = {}
        for index, one in enumerate(moves):
            for value, _ in one.reads:
                self.readers.setdefault(value, []).append(index)
        self.alive: set[int] = set()
        self.begun = [False] * len(tasks)

    def key(self, index: int) -> tuple[float, int, int]:
        return -self.chains[index], self.more[index] if self.tasks[index].stream == COMPUTE else 0, index

    def is_stale(self, key: tuple[float, int, int], index: int) -> bool:
        return self.begun[index] or key != self.key(index)

    def _start(self, start: float, index: int, stream: int) -> None:
        self.begun[index] = True
        changed = set()
        for value, bytes in self.moves[index].reads:
            if value not in self.alive:
                self.alive.add(value)
                for one in self.readers[value]:
                    self.more[one] -= bytes
                    changed.add(one)
        super()._start(start, index, stream)
        for one in changed:
            is_ready = not self.begun[one] and not self.waits[one] and self.ready_at[one] <= self.free[COMPUTE]
            if is_ready and self.tasks[one].stream == COMPUTE:
                heapq.heappush(self.now[COMPUTE], (self.key(one), one))


def _readers(backwards: Sequence[int], leaders: Sequence[int], before: Sequence[set[int]]) -> list[set[int]]:
    """For each leader, by its index, those that read what it or its followers write."""
    place = {at: index for index, at in enumerate(backwards)}
    readers: list[set[int]] = [set() for _ in backwards]
    for at, makers in enumerate(before):
        reader = place[leaders[at]]
        for maker in makers:
            readers[place[leaders[maker]]].add(reader)
    for index, found in enumerate(readers):
        found.discard(index)
    return readers


def _chains(kernels: Sequence[Kernel], waits: Sequence[float], before: Sequence[set[int]]) -> list[float]:
    """The time of the collectives in the longest chain that ends with each kernel.

    A kernel that computes element by element counts like the first one that reads its result: XLA computes it there.
    """
    found = [0.0] * len(kernels)
    for at in range(len(kernels)):
        found[at] = waits[at] + max([found[one] for one in before[at]], default=0.0)
    first = [float("inf")] * len(kernels)
    for at in range(len(kernels) - 1, -1, -1):
        if found[at] < first[at] < float("inf") and not _is_apart(kernels[at]):
            found[at] = first[at]
        for one in before[at]:
            first[one] = min(first[one], found[at])
    return found


def _leaders(kernels: Sequence[Kernel], before: Sequence[set[int]], size: Callable[[int], int]) -> list[int]:
    """The kernel right after which each one runs; itself for most.

    An elementwise op with a smaller result runs as soon as it may: XLA computes it in the kernel of its operand.
    """
    found = list(range(len(kernels)))
    for at, kernel in enumerate(kernels):
        last = max(before[at], default=at)
        if found[last] != last or _is_apart(kernel) or kernel.root.kind.name == "stablehlo.reduce":
            continue
        if max(map(size, kernel.reads), default=0) > sum(map(size, kernel.writes)):
            found[at] = last
    return found


def _is_apart(kernel: Kernel) -> bool:
    """Whether XLA keeps a kernel apart from those before and after it: collectives, loops and products."""
    is_whole = kernel.root.traffic is not None or bool(kernel.inner)
    return is_whole or has_product(kernel)
