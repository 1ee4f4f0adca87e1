"""The kernels and collectives of one candidate, as tasks of streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyshardy.core.sharding import TensorSharding
from pyshardy.costing.schedule import COMPUTE, Task, run_tasks
from pyshardy.rules.properties import PRODUCTS
from pyshardy.searching.autopartition.op_prices import OpPrice, Sent, StaticOp

Tasks = tuple[int, ...]
"""Tasks by their numbers, each once."""
_MATRIX: Final = PRODUCTS | {"stablehlo.convolution"}


class CandidateTasks:
    """The tasks of one candidate, in program order.

    Args:
        overlaps: Whether a product and a collective next to it are cut into pieces, so that they overlap.

    Attributes:
        makers: For each value, the tasks that produce it.
        communication: Seconds of collectives.
    """

    def __init__(self, overlaps: bool) -> None:
        self.overlaps = overlaps
        self.makers: dict[int, Tasks] = {}
        self.communication = 0.0
        self._tasks: list[Task] = []
        self._waits: list[Tasks] = []
        self._gains: dict[tuple[int, int], float] = {}
        self._moved: dict[tuple[int, TensorSharding | None], Tasks] = {}

    def add(self, static: StaticOp, price: OpPrice) -> None:
        """Add an op: the collectives before it, its kernel, and the collectives after it."""
        makers, tensors, times = self.makers, static.tensors, static.times
        is_product = self.overlaps and static.kind.name in _MATRIX
        waits = [makers.get(value, ()) for value in tensors[: static.operands]]
        sends = []
        for one in price.before:
            place = tensors[one.tensor], one.target
            done = self._moved.get(place)
            if done is None:
                done = self._moved[place] = self.send(waits[one.tensor], one.sent, times)
                sends.append((done[0], one.sent))
            waits[one.tensor] = done
        end = _joined(waits)
        if price.seconds:
            end = self._task(COMPUTE, price.seconds * times, end)
            for task, sent in sends if is_product else ():
                self._overlap(task, end[0], sent)
        for value in tensors[static.operands :]:
            makers[value] = end
        for one in price.behind:
            done = self.send(end, one.sent, static.sum_times if one.is_sum else times)
            makers[tensors[one.tensor]] = done
            if is_product and price.seconds:
                self._overlap(end[0], done[0], one.sent)

    def send(self, waits: Tasks, sent: Sent, times: int) -> Tasks:
        """Add collectives that run a number of times."""
        seconds = sent.seconds * times
        self.communication += seconds
        return self._task(sent.network, seconds, waits)

    def end(self) -> float:
        """The time until all tasks have ended, in seconds."""
        return run_tasks(self._tasks, self._waits, self._gains)

    def _task(self, stream: int, seconds: float, waits: Tasks) -> Tasks:
        self._tasks.append(Task(stream, seconds))
        self._waits.append(waits)
        return (len(self._tasks) - 1,)

    def _overlap(self, first: int, second: int, sent: Sent) -> None:
        if sent.network == 0:
            tasks = self._tasks
            self._gains[first, second] = min(tasks[first].seconds, tasks[second].seconds) * (1 - 1 / sent.group)


def _joined(waits: Sequence[Tasks]) -> Tasks:
    """The union of several lists of tasks."""
    first = waits[0] if waits else ()
    if all(one is first or not one or one == first for one in waits):
        return first
    return tuple(sorted({task for one in waits for task in one}))
