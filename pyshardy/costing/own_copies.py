"""Gives every product its own copy of an operand that others read in another order, as XLA for GPUs does.

A product wants the dimensions that it sums over next to each other, in one order with the rest. A value that is
computed from a transposed one, such as the probabilities of attention from the scores, is written in the order of the
product that reads it. So it is not kept from the forward pass: the gradient computes it once more from the scores. An
operand that lies in memory as one matrix per batch is read as it is.
"""

from __future__ import annotations

from pyshardy.costing.kernels import Kernel, Kernels, has_product
from pyshardy.costing.orders import DimOrder, is_matrix
from pyshardy.costing.program import CostOp, CostTensor
from pyshardy.rules.dimension_numbers import DotNumbers

_TRANSPOSE = "stablehlo.transpose"
_PRODUCT = "stablehlo.dot_general"
_FREE_RANK = 2
"""A matrix is read in either order."""


def with_own_copies(block: Kernels, tensors: list[CostTensor], orders: dict[int, DimOrder]) -> Kernels:
    """A block in which products that sum over other dimensions of a value read copies, and the blocks inside too.

    Args:
        block: The kernels.
        tensors: The type of every value; those of the copies are added.
        orders: The order of dimensions in memory of the values for which it is known; those of the copies
            are added: their kernels run over them in that order.
    """
    makers = {value: kernel for kernel in block.kernels for value in kernel.writes}
    first: dict[int, tuple[int, ...]] = {}
    copies: dict[tuple[int, tuple[int, ...]], int] = {}
    found: list[Kernel] = []
    for kernel in block.kernels:
        if kernel.inner:
            kernel = kernel._replace(inner=tuple([with_own_copies(one, tensors, orders) for one in kernel.inner]))
        root = kernel.root
        for place, value in enumerate(root.operands if root.kind.name == _PRODUCT else ()):
            maker = makers.get(value)
            if maker is None or len(tensors[value].shape or ()) <= _FREE_RANK or not _is_behind_transpose(maker):
                continue
            if value in orders and is_matrix(root, place, orders[value]):
                continue
            summed = _summed(root, place)
            if first.setdefault(value, summed) == summed:
                continue
            if (value, summed) not in copies:
                copies[value, summed] = len(tensors)
                tensors.append(tensors[value])
                if value in orders:
                    orders[copies[value, summed]] = orders[value]
                found.append(_copy(maker, value, copies[value, summed]))
            kernel = _reading(kernel, value, copies[value, summed])
        found.append(kernel)
    return block._replace(kernels=tuple(found))


def _is_behind_transpose(kernel: Kernel) -> bool:
    """Whether a kernel computes element by element, or in rows, what it reads in another order."""
    if kernel.inner or kernel.root.traffic is not None or has_product(kernel):
        return False
    return len(kernel.ops) > 1 and any(op.kind.name == _TRANSPOSE for op in kernel.ops)


def _summed(product: CostOp, place: int) -> tuple[int, ...]:
    """The dimensions of an operand over which a product sums."""
    numbers = product.kind.fact("dot_dimension_numbers")
    assert isinstance(numbers, DotNumbers)
    return tuple(sorted((numbers.lhs_contracting, numbers.rhs_contracting)[place]))


def _copy(maker: Kernel, value: int, copy: int) -> Kernel:
    """The kernel that computes a value once more."""
    root = next(op for op in maker.ops if value in op.results)
    others = tuple([op for op in maker.ops if op is not root])
    return maker._replace(ops=(*others, root._replace(results=(copy,))), writes=(copy,), in_place=frozenset())


def _reading(kernel: Kernel, value: int, copy: int) -> Kernel:
    """A kernel that reads a copy instead of a value."""
    root = kernel.root
    root = root._replace(operands=tuple([copy if one == value else one for one in root.operands]))
    reads = tuple([copy if one == value else one for one in kernel.reads])
    return kernel._replace(ops=(*kernel.ops[:-1], root), reads=reads, in_place=kernel.in_place - {value})
