"""Merges what is computed element by element into the products beside it, as compilers for TPUs do.

Elementwise ops, slices and paddings of operands are computed while the matrix unit reads them. Elementwise ops of its
results are computed before these are stored. A value that only products read is computed by each of them, even if
storing it once would read less.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyshardy.costing.kernels import Kernel, Kernels, has_product
from pyshardy.costing.program import CostTensor

_CONVERT = "stablehlo.convert"
_MOST_OPS = 400
"""A kernel of more ops is not made longer."""


def with_products(block: Kernels, tensors: Sequence[CostTensor], can_fuse: Callable[[str], bool]) -> Kernels:
    """A block with kernels merged into products, and the blocks inside too.

    Args:
        block: The kernels.
        tensors: The type of every value.
        can_fuse: Whether an op of a name computes element by element.
    """
    kernels = [
        kernel._replace(inner=tuple([with_products(one, tensors, can_fuse) for one in kernel.inner]))
        for kernel in block.kernels
    ]
    readers: dict[int, list[Kernel]] = {}
    for kernel in kernels:
        for value in kernel.needs:
            readers.setdefault(value, []).append(kernel)
    windowed = _windowed(kernels, readers)
    found: list[Kernel | None] = []
    makers: dict[int, int] = {}
    left = {value: len(users) for value, users in readers.items()}
    left.update((value, -1) for value in block.results)
    for kernel in kernels:
        for value in kernel.reads:
            at = makers.get(value)
            maker = None if at is None else found[at]
            if maker is None or at is None or left[value] < 1 or not _joins(maker, kernel, value, tensors, can_fuse):
                continue
            if not windowed.isdisjoint((*maker.writes, *kernel.writes)):
                continue
            if len(readers[value]) > 1 and not all(has_product(one) for one in readers[value]):
                continue
            if has_product(maker) and _is_computed_behind(value, kernel, tensors, readers, left):
                continue
            kernel = _joined(maker, kernel, value)
            left[value] -= 1
            if not left[value]:
                found[at] = None
        makers.update((value, len(found)) for value in kernel.writes)
        found.append(kernel)
    return block._replace(kernels=tuple([kernel for kernel in found if kernel is not None]))


def _windowed(kernels: Sequence[Kernel], readers: Mapping[int, Sequence[Kernel]]) -> set[int]:
    """The results of products that the partitioner cuts into parts, as an operand is gathered or the result scattered.

    Such a product is a loop: it reads its operands from memory, and stores what it computes.
    """
    gathered = {value for kernel in kernels if _kind(kernel) == "all_gather" for value in kernel.writes}
    return {
        value
        for kernel in kernels
        if has_product(kernel)
        for value in kernel.writes
        if not gathered.isdisjoint(kernel.root.operands)
        or any(_kind(one) == "reduce_scatter" for one in readers.get(value, ()))
    }


def _kind(kernel: Kernel) -> str | None:
    """The kind of a collective; None for other kernels."""
    return None if kernel.root.traffic is None else kernel.root.traffic.kind


def _is_computed_behind(
    value: int,
    kernel: Kernel,
    tensors: Sequence[CostTensor],
    readers: Mapping[int, Sequence[Kernel]],
    left: Mapping[int, int],
) -> bool:
    """Whether one product alone reads what a kernel makes of another one's value, and computes the kernel itself.

    The product before computes it if one op of the kernel reads the value, and no conversion of 16-bit floats is near.
    """
    result = kernel.writes[0]
    if len(kernel.writes) > 1 or left.get(result) != 1 or not has_product(readers[result][0]):
        return False
    names = [op.kind.name for op in kernel.ops]
    uses = [op.kind.name for op in kernel.ops if value in op.operands]
    return len(uses) > 1 or uses[0] == _CONVERT or (tensors[value].dtype != "f32" and _CONVERT in names)


def _joins(
    maker: Kernel, kernel: Kernel, value: int, tensors: Sequence[CostTensor], can_fuse: Callable[[str], bool]
) -> bool:
    """Whether a value is computed in the kernel that reads it."""
    if maker.inner or kernel.inner or len(maker.writes) != 1 or len(kernel.writes) != 1:
        return False
    if maker.root.traffic is not None or kernel.root.traffic is not None:
        return False
    if len(maker.ops) + len(kernel.ops) > _MOST_OPS:
        return False
    first, second = has_product(maker), has_product(kernel)
    if first and second:
        return False
    if second:
        return value in kernel.root.operands and _is_loop(maker, can_fuse)
    return first and _is_loop(kernel, can_fuse) and tensors[value].shape == tensors[kernel.writes[0]].shape


def _is_loop(kernel: Kernel, can_fuse: Callable[[str], bool]) -> bool:
    return all(can_fuse(op.kind.name) and op.kind.name != "stablehlo.reduce" for op in kernel.ops)


def _joined(maker: Kernel, kernel: Kernel, value: int) -> Kernel:
    reads = dict.fromkeys((*maker.reads, *(one for one in kernel.reads if one != value)))
    in_place = (kernel.in_place - {value}) | (maker.in_place if value in kernel.in_place else frozenset())
    waits = tuple(dict.fromkeys((*maker.waits, *kernel.waits)))
    return Kernel((*maker.ops, *kernel.ops), tuple(reads), kernel.writes, in_place, (), waits)
