"""The aggressive strategy: resolve conflicts by sizes.

Source: docs/semantics/propagation.md#aggressive-strategy
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import axes_size, is_prefix, is_strict_prefix
from pyshardy.core.mesh import Mesh
from pyshardy.propagation.compatible import Cutter, compatible_axes, cut_by_other_factors, cut_within_factor
from pyshardy.propagation.program import Direction
from pyshardy.propagation.projection import FactorState, TensorState
from pyshardy.rules.rule import Rule


def propagate_aggressive(
    rule: Rule,
    states: Sequence[TensorState],
    directions: Sequence[Direction],
    mesh: Mesh,
    is_conservative: bool,
    is_elementwise: bool,
) -> list[tuple[int, int]]:
    """Extend the factors of all tensors, in place; only a tensor's own conflicts cut its axes.

    Args:
        rule: The rule of the op.
        states: The tensors, operands first.
        directions: Direction per factor.
        mesh: The mesh of the step.
        is_conservative: Whether sub-axes are refused.
        is_elementwise: Whether the op is element-wise. Then of conflicting factors the one that is sharded further
            comes first, and operands are not sharded further than the results.

    Returns:
        The changed pairs of tensor and factor.
    """
    operand_count = len(rule.operands)
    candidates = {
        factor: axes
        for factor, direction in enumerate(directions)
        if (axes := compatible_axes(factor, states, operand_count, direction))
    }
    if not candidates:
        return []
    order = _factor_order(candidates, states, rule.factor_sizes, mesh, is_elementwise)
    results = range(operand_count, len(states))
    changed = []
    for tensor in (*results, *range(operand_count)):
        state = states[tensor]
        for factor in order:
            found = state.factors.get(factor)
            if found is None or not is_strict_prefix(found.axes, candidates[factor]):
                continue  # conflicts only shorten the candidate, so it cannot extend these axes
            size = rule.factor_sizes[factor]
            axes = _cut_for_tensor(candidates[factor], factor, found, size, state, mesh, is_conservative)
            if is_elementwise and tensor < operand_count:
                axes = _limit_to_results(axes, factor, states[operand_count:])
            if is_strict_prefix(found.axes, axes):
                found.axes = axes
                changed.append((tensor, factor))
    return changed


def _factor_order(
    candidates: dict[int, Axes],
    states: Sequence[TensorState],
    sizes: tuple[int, ...],
    mesh: Mesh,
    is_elementwise: bool,
) -> list[int]:
    """Factors with the largest source tensor first."""
    if len(candidates) == 1:
        return list(candidates)
    tensor_sizes = [prod([sizes[held] for held in state.factors]) for state in states]
    order = []
    for factor, axes in candidates.items():
        source_size, source = _source_of(factor, axes, states, tensor_sizes)
        sharded_size = axes_size(axes, mesh) if is_elementwise else 0
        order.append((-source_size, -sharded_size, source, factor))
    order.sort()
    return [place[3] for place in order]


def _source_of(factor: int, axes: Axes, states: Sequence[TensorState], tensor_sizes: list[int]) -> tuple[int, int]:
    """Size and number of the largest tensor that is sharded on the factor at least as far as `axes`."""
    best = (-1, len(states))
    for tensor, state in enumerate(states):
        found = state.factors.get(factor)
        if found is not None and tensor_sizes[tensor] > best[0] and is_prefix(axes, found.axes):
            best = (tensor_sizes[tensor], tensor)
    return best


def _cut_for_tensor(
    candidate: Axes,
    factor: int,
    found: FactorState,
    size: int,
    state: TensorState,
    mesh: Mesh,
    is_conservative: bool,
) -> Axes:
    within = Cutter(mesh, is_conservative)
    for axis in candidate:
        if not within.take(axis, cut_within_factor(axis, state, found, size, within.product, mesh)):
            break
    if not is_strict_prefix(found.axes, tuple(within.kept)):
        return ()
    across = Cutter(mesh, is_conservative)
    for axis in within.kept:
        if not across.take(axis, cut_by_other_factors(axis, state, factor)):
            break
    return tuple(across.kept)


def _limit_to_results(axes: Axes, factor: int, results: Sequence[TensorState]) -> Axes:
    """The part of `axes` on which every result that has the factor is sharded."""
    for state in results:
        found = state.factors.get(factor)
        if found is not None and is_strict_prefix(found.axes, axes):
            axes = found.axes
    return axes
