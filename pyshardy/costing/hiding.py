"""The order in which XLA for GPUs runs kernels so that collectives hide behind them.

Its scheduler goes from the end of a block to its start. Wherever no collective is under way, one ends that may end
there, and kernels that may run beside it come before its end, until they take as long as it does; then comes its start.
Of several kernels, the one with the longest chain of collectives before it runs last. So what only a collective reads,
such as the gradient of a weight, is computed late, and what it is computed from stays in memory until then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyshardy.costing.kernels import Kernel
from pyshardy.costing.schedule import COMPUTE, Streams, Task
from pyshardy.costing.work import work_of

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


def hidden(kernels: Sequence[Kernel], seconds: Sequence[float]) -> Hidden:
    """The kernels in an order in which collectives hide behind others, one collective at a time.

    Args:
        kernels: The kernels in another order in which they may run; of kernels with equal chains of collectives before
            them, the later one stays later.
        seconds: How long each of them takes.
    """
    is_collective = [kernel.root.traffic is not None for kernel in kernels]
    makers = {value: at for at, kernel in enumerate(kernels) for value in kernel.writes}
    before = [{makers[value] for value in kernel.needs if value in makers} for kernel in kernels]
    chains = _chains(kernels, seconds, before)
    backwards = sorted(range(len(kernels)), key=lambda at: (-chains[at], -at))
    place = [0] * len(kernels)
    for index, at in enumerate(backwards):
        place[at] = index
    readers: list[list[int]] = [[] for _ in kernels]
    for at, found in enumerate(before):
        for maker in found:
            readers[place[maker]].append(place[at])
    tasks = [Task(_COLLECTIVES if is_collective[at] else COMPUTE, seconds[at]) for at in backwards]
    streams = Streams(tasks, readers, {})
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
        if is_start or tasks[index].stream == COMPUTE:
            begun[index] = len(order)
            order.append(kernels[backwards[index]])
        else:
            ends[begun[index]] = len(order)
    return Hidden(order, ends)


def _chains(kernels: Sequence[Kernel], seconds: Sequence[float], before: Sequence[set[int]]) -> list[float]:
    """The time of the collectives in the longest chain that ends with each kernel.

    A kernel that computes element by element counts like the first one that reads its result: XLA computes it there.
    """
    found = [0.0] * len(kernels)
    for at, kernel in enumerate(kernels):
        own = 0.0 if kernel.root.traffic is None else seconds[at]
        found[at] = own + max([found[one] for one in before[at]], default=0.0)
    first = [float("inf")] * len(kernels)
    for at in range(len(kernels) - 1, -1, -1):
        kernel = kernels[at]
        if found[at] < first[at] < float("inf") and kernel.root.traffic is None and not _stays(kernel):
            found[at] = first[at]
        for one in before[at]:
            first[one] = min(first[one], found[at])
    return found


def _stays(kernel: Kernel) -> bool:
    """Whether XLA keeps a kernel apart from those that read its result."""
    return bool(kernel.inner) or any(work_of(op.kind).is_matrix for op in kernel.ops)
