"""The basic strategy: extend a factor only as far as no tensor of the op conflicts.

Source: docs/semantics/propagation.md#basic-strategy
"""

from __future__ import annotations

from collections.abc import Sequence

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.axis_lists import is_strict_prefix
from pyshardy.core.mesh import Mesh
from pyshardy.propagation.compatible import Cutter, compatible_axes, cut_by_other_factors, cut_within_factor
from pyshardy.propagation.program import Direction
from pyshardy.propagation.projection import TensorState
from pyshardy.rules.rule import Rule


def propagate_basic(
    rule: Rule, states: Sequence[TensorState], directions: Sequence[Direction], mesh: Mesh, is_conservative: bool
) -> list[tuple[int, int]]:
    """Extend the factors of all tensors, in place, one factor after the other.

    Args:
        rule: The rule of the op.
        states: The tensors, operands first.
        directions: Direction per factor.
        mesh: The mesh of the step.
        is_conservative: Whether sub-axes are refused.

    Returns:
        The changed pairs of tensor and factor.
    """
    changed = []
    for factor, direction in enumerate(directions):
        candidate = compatible_axes(factor, states, len(rule.operands), direction)
        if not candidate or not _may_grow(states, factor, candidate):
            continue
        axes = _cut_for_all(candidate, factor, rule.factor_sizes[factor], states, mesh, is_conservative)
        for tensor, state in enumerate(states):
            found = state.factors.get(factor)
            if found is not None and is_strict_prefix(found.axes, axes):
                found.axes = axes
                changed.append((tensor, factor))
    return changed


def _may_grow(states: Sequence[TensorState], factor: int, candidate: Axes) -> bool:
    """Whether any tensor could get more axes of a factor: conflicts only shorten the candidate."""
    for state in states:
        found = state.factors.get(factor)
        if found is not None and is_strict_prefix(found.axes, candidate):
            return True
    return False


def _cut_for_all(
    candidate: Axes, factor: int, size: int, states: Sequence[TensorState], mesh: Mesh, is_conservative: bool
) -> Axes:
    cutter = Cutter(mesh, is_conservative)
    for axis in candidate:
        rest: AxisRef | None = axis
        for state in states:
            if rest is not None:
                rest = cut_by_other_factors(rest, state, factor)
            found = state.factors.get(factor)
            if rest is not None and found is not None:
                rest = cut_within_factor(rest, state, found, size, cutter.product, mesh)
        if not cutter.take(axis, rest):
            break
    return tuple(cutter.kept)
