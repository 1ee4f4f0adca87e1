"""Merges what is computed element by element into the scatter that alone reads it, as compilers for accelerators do.

A scatter that adds to zeros writes them itself, whoever else starts from zeros: no array of zeros stays in memory. XLA
for GPUs computes updates and indices in the kernel of the scatter too. XLA for TPUs compares the place of every element
with the index of its row where a row has one update, as in the gradient of a cross-entropy: it needs no scatter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from pyshardy.costing.flat import Flat, FlatBlock, FlatOp
from pyshardy.costing.kernels import Kernel, Kernels
from pyshardy.costing.program import CostKind, CostOp, CostTensor
from pyshardy.rules.dimension_numbers import GatherNumbers

_SCATTER, _SELECT = "stablehlo.scatter", "stablehlo.select"
_SMALL_PART = 1000
"""What reads less than this fraction of what it writes is a fill: an array of zeros, or of zeros on some devices."""


def with_compared_places(flat: Flat) -> Flat:
    """A program with a choice for every element instead of each scatter with one update per row.

    Args:
        flat: The program.
    """
    body = _compared(flat.body)
    return flat if body is flat.body else flat._replace(body=body)


def _compared(block: FlatBlock) -> FlatBlock:
    ops: list[FlatOp] = []
    for one in block.ops:
        op, inner = one.op, tuple([_compared(region) for region in one.inner])
        if op.kind.name == _SCATTER and _has_one_per_row(op):
            chosen = CostKind(_SELECT, (op.kind.operands[1], op.kind.operands[2], op.kind.operands[0]), op.kind.results)
            op = op._replace(kind=chosen, operands=(op.operands[1], op.operands[2], op.operands[0]), regions=())
            one, inner = FlatOp(op), ()
        elif any(new is not old for new, old in zip(inner, one.inner)):
            one = one._replace(inner=inner)
        ops.append(one)
    return block if all(new is old for new, old in zip(ops, block.ops)) else block._replace(ops=tuple(ops))


def _has_one_per_row(op: CostOp) -> bool:
    """Whether each row of a scatter along one dimension has one update."""
    numbers = op.kind.fact("scatter_dimension_numbers")
    if not isinstance(numbers, GatherNumbers) or len(op.operands) != 3 or numbers.window or len(numbers.dropped) != 1:
        return False
    target, _, updates = op.kind.operands
    row = (target.shape or ())[numbers.dropped[0]]
    return 0 < updates.elements * row == target.elements


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
