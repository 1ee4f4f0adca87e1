"""Finds which dimensions of a product belong together: in its operands, and in its result."""

from __future__ import annotations

from pyshardy.costing.program import CostKind
from pyshardy.rules.dimension_numbers import ConvolutionNumbers, DotNumbers

ProductDim = tuple[int | None, int | None, int | None]
"""A dimension in the first operand, in the second, and in the result; None where it is not."""
_GROUPS = "feature_group_count", "batch_group_count"


def product_dims(kind: CostKind) -> list[ProductDim]:
    """The dimensions of a product of matrices, or of a convolution, that can be cut into parts.

    Those of a window, and of a convolution of groups, cannot.

    >>> from pyshardy.costing.program import CostTensor
    >>> a, b, c = (CostTensor(shape, "f32", 0) for shape in ((8, 2, 3), (8, 3, 4), (8, 2, 4)))
    >>> numbers = DotNumbers((0,), (0,), (2,), (1,))
    >>> product_dims(CostKind("stablehlo.dot_general", (a, b), (c,), (("dot_dimension_numbers", numbers),)))
    [(0, 0, 0), (2, 1, None), (1, None, 1), (None, 2, 2)]
    """
    conv = kind.fact("dimension_numbers")
    if isinstance(conv, ConvolutionNumbers):
        if any(kind.fact(name, 1) != 1 for name in _GROUPS):
            return []
        return [
            (conv.lhs_batch, None, conv.output_batch),
            (conv.lhs_feature, conv.kernel_input_feature, None),
            (None, conv.kernel_output_feature, conv.output_feature),
        ]
    dot = kind.fact("dot_dimension_numbers")
    if not isinstance(dot, DotNumbers):
        return []
    found: list[ProductDim] = [(*pair, place) for place, pair in enumerate(zip(dot.lhs_batching, dot.rhs_batching))]
    at = len(found)
    found += [(*pair, None) for pair in zip(dot.lhs_contracting, dot.rhs_contracting)]
    taken = (*dot.lhs_batching, *dot.lhs_contracting), (*dot.rhs_batching, *dot.rhs_contracting)
    for place, operand in enumerate(kind.operands):
        for dim in range(len(operand.shape or ())):
            if dim not in taken[place]:
                found.append((None, dim, at) if place else (dim, None, at))
                at += 1
    return found
