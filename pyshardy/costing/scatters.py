"""Merges what is computed element by element into the scatter that alone reads it, as compilers for accelerators do.

A scatter that adds to zeros writes the zeros itself. So no array of zeros stays in memory, even if others start from
it. XLA for GPUs computes updates and indices in the kernel of the scatter too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from pyshardy.costing.kernels import Kernel, Kernels
from pyshardy.costing.program import CostTensor

_SCATTER = "stablehlo.scatter"
_SMALL_PART = 1000
"""What reads less than this fraction of what it writes is a fill: an array of zeros, or of zeros on some devices."""


def with_scatters(
    block: Kernels, tensors: Sequence[CostTensor], can_fuse: Callable[[str], bool], computes_updates: bool
) -> Kernels:
    """A block with kernels merged into scatters, and the blocks inside too.

    Args:
        block: The kernels.
        tensors: The type of every value.
        can_fuse: Whether an op of a name computes element by element.
        computes_updates: Whether a scatter computes its updates and indices, not only what it starts from.
    """
    kernels = [
        kernel._replace(inner=tuple([with_scatters(one, tensors, can_fuse, computes_updates) for one in kernel.inner]))
        if kernel.inner
        else kernel
        for kernel in block.kernels
    ]
    if not any(kernel.root.kind.name == _SCATTER for kernel in kernels):
        return block._replace(kernels=tuple(kernels))
    left = Counter(value for kernel in kernels for value in kernel.needs)
    left.update(block.results)
    found: list[Kernel | None] = []
    makers: dict[int, int] = {}
    for kernel in kernels:
        if kernel.root.kind.name == _SCATTER:
            for place, value in enumerate(kernel.root.operands):
                at = makers.get(value)
                maker = None if at is None else found[at]
                if maker is None or at is None or not _computes(maker, can_fuse) or value not in kernel.reads:
                    continue
                if (_fills(maker, tensors) and not place) or (computes_updates and place and left[value] == 1):
                    kernel = _joined(maker, kernel, value)
                    left[value] -= 1
                    if not left[value]:
                        found[at] = None
                        left.subtract(maker.needs)
                    left.update(maker.needs)
        makers.update((value, len(found)) for value in kernel.writes)
        found.append(kernel)
    return block._replace(kernels=tuple([kernel for kernel in found if kernel is not None]))


def _computes(kernel: Kernel, can_fuse: Callable[[str], bool]) -> bool:
    """Whether a kernel computes one value element by element."""
    if kernel.inner or len(kernel.writes) != 1 or kernel.root.traffic is not None:
        return False
    return all(can_fuse(op.kind.name) and op.kind.name != "stablehlo.reduce" for op in kernel.ops)


def _fills(kernel: Kernel, tensors: Sequence[CostTensor]) -> bool:
    """Whether a kernel writes much more than it reads."""
    return sum(tensors[value].bytes for value in kernel.reads) * _SMALL_PART <= tensors[kernel.writes[0]].bytes


def _joined(maker: Kernel, scatter: Kernel, value: int) -> Kernel:
    reads = dict.fromkeys((*maker.reads, *(one for one in scatter.reads if one != value)))
    waits = tuple(dict.fromkeys((*maker.waits, *scatter.waits)))
    return scatter._replace(
        ops=(*maker.ops, *scatter.ops), reads=tuple(reads), in_place=scatter.in_place - {value}, waits=waits
    )
