"""Keeping the better sharded result of a product if nothing else is resharded.

Source: docs/semantics/reshards-and-collectives.md#keeping-a-better-product
"""

from __future__ import annotations

from collections.abc import Sequence

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import lists_overlap
from pyshardy.propagation.projection import TensorState
from pyshardy.rules.rule import Rule


def better_product_axes(
    rule: Rule, states: Sequence[TensorState], element_counts: Sequence[int]
) -> tuple[int, Axes] | None:
    """A factor of a product's result, and the operand's axes that the result should take for it.

    It applies if the result is sharded like the operands but for one factor, and that has the axes of the contraction.
    The product would be partial along these axes, and must be split along them too. It is better to compute the product
    with the operand's sharding and reshard it afterwards.

    Args:
        rule: The rule of the product.
        states: The factors of both operands and of the result.
        element_counts: Their numbers of elements.

    Returns:
        The factor and its axes; None if the product stays as it is.
    """
    left, right, result = states
    contracted: list[Axes] = []
    free: list[Axes] = []
    different: list[tuple[int, Axes, int]] = []
    for factor in range(len(rule.factor_sizes)):
        in_operands = [
            (state.factors[factor].axes, count)
            for state, count in zip((left, right), element_counts)
            if factor in state.factors
        ]
        own = result.factors.get(factor)
        if len({axes for axes, _ in in_operands}) != 1:
            return None
        axes = in_operands[0][0]
        if own is None:
            contracted.append(axes)
            continue
        if len(in_operands) == 1:
            free.append(axes)
        if axes != own.axes:
            different.append((factor, axes, max(count for _, count in in_operands)))
    if len(different) != 1 or _any_overlap(free):
        return None
    factor, axes, count = different[0]
    wanted = result.factors[factor].axes
    if not axes or not wanted or wanted != sum(contracted, ()) or element_counts[2] > count:
        return None
    return factor, axes


def _any_overlap(lists: Sequence[Axes]) -> bool:
    return any(lists_overlap(axes, other) for index, axes in enumerate(lists) for other in lists[:index])
