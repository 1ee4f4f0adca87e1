"""Makes small products with vectors multiplications and sums, as XLA for GPUs does: these join other kernels.

It is a product with vectors if one operand has only batch dimensions and summed dimensions, as in the attention of one
new token.
"""

from __future__ import annotations

from math import prod
from typing import Final

from pyshardy.costing.flat import Flat, FlatBlock, FlatOp
from pyshardy.costing.program import CostKind, CostOp, CostTensor
from pyshardy.rules.dimension_numbers import DotNumbers

_PRODUCT, _MULTIPLY, _SUM = "stablehlo.dot_general", "stablehlo.multiply", "stablehlo.reduce"
_MOST_ELEMENTS: Final = 10_000_000
"""A larger matrix is left to a library. Source: XLA's size from which it rewrites products for cuBLAS."""


def with_vector_sums(flat: Flat) -> Flat:
    """A program with small products of vectors as multiplications and sums over f32.

    Args:
        flat: The program.
    """
    tensors = list(flat.tensors)
    body = _block(flat.body, tensors)
    return flat if body is flat.body else flat._replace(tensors=tensors, body=body)


def _block(block: FlatBlock, tensors: list[CostTensor]) -> FlatBlock:
    ops: list[FlatOp] = []
    is_changed = False
    for one in block.ops:
        if one.inner:
            inner = tuple([_block(region, tensors) for region in one.inner])
            if any(new is not old for new, old in zip(inner, one.inner)):
                one, is_changed = one._replace(inner=inner), True
        elif one.op.kind.name == _PRODUCT and _is_with_vector(one.op):
            ops += _summed(one.op, tensors)
            is_changed = True
            continue
        ops.append(one)
    return block._replace(ops=tuple(ops)) if is_changed else block


def _is_with_vector(op: CostOp) -> bool:
    numbers, operands = op.kind.fact("dot_dimension_numbers"), op.kind.operands
    if not isinstance(numbers, DotNumbers) or len(op.results) != 1:
        return False
    used = (
        {*numbers.lhs_batching, *numbers.lhs_contracting},
        {*numbers.rhs_batching, *numbers.rhs_contracting},
    )
    free = [
        prod(size for dim, size in enumerate(one.shape or ()) if dim not in dims) for one, dims in zip(operands, used)
    ]
    depth = prod((operands[0].shape or ())[dim] for dim in numbers.lhs_contracting)
    return min(free) == 1 < depth and max(free) * depth < _MOST_ELEMENTS


def _summed(op: CostOp, tensors: list[CostTensor]) -> list[FlatOp]:
    """The multiplication, in the order of the larger operand, and the sum."""
    numbers = op.kind.fact("dot_dimension_numbers")
    assert isinstance(numbers, DotNumbers)
    is_right = op.kind.operands[1].elements > op.kind.operands[0].elements
    shape = op.kind.operands[is_right].shape or ()
    dims = numbers.rhs_contracting if is_right else numbers.lhs_contracting
    wide = CostTensor(shape, "f32", 4 * prod(shape))
    tensors.append(wide)
    product = len(tensors) - 1
    multiplied = CostOp(CostKind(_MULTIPLY, op.kind.operands, (wide,)), op.operands, (product,), place=op.place)
    facts = (("body", ("stablehlo.add",)), ("dimensions", tuple(dims)))
    return [
        FlatOp(multiplied),
        FlatOp(CostOp(CostKind(_SUM, (wide,), op.kind.results, facts), (product,), op.results, place=op.place)),
    ]
