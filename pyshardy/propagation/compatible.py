"""The axes that the tensors of a step agree on, and the points where conflicts cut them.

Source: docs/semantics/propagation.md#compatible-axes
Source: docs/semantics/propagation.md#basic-strategy
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.axis_lists import prefix_without_overlaps
from pyshardy.core.mesh import Mesh
from pyshardy.propagation.program import Direction
from pyshardy.propagation.projection import FactorState, TensorState

_NONE, _BACKWARD, _BOTH = Direction.NONE, Direction.BACKWARD, Direction.BOTH


def compatible_axes(factor: int, states: Sequence[TensorState], operand_count: int, direction: Direction) -> Axes:
    """The longest list of axes that all tensors with the factor can follow.

    The direction says which tensors may contribute axes; all of them can cut the list.

    Args:
        factor: The factor.
        states: The tensors, operands first.
        operand_count: How many of them are operands.
        direction: The side that may contribute axes.
    """
    if direction is _NONE:
        return ()
    contributing = operand_count
    if direction is _BACKWARD:
        states = [*states[operand_count:], *states[:operand_count]]
        contributing = len(states) - operand_count
    elif direction is _BOTH:
        contributing = len(states)
    axes: list[AxisRef] = []
    frozen = False
    for place in range(len(states)):
        if place == contributing:
            frozen = True
        found = states[place].factors.get(factor)
        if found is not None and found.axes and _follow(axes, found.axes, frozen):
            frozen = True
    return tuple(axes)


def _follow(axes: list[AxisRef], new: Axes, frozen: bool) -> bool:
    """Cut or extend `axes` in place by the axes of one more tensor; return whether it must not grow any more."""
    for position in range(min(len(axes), len(new))):
        old_axis, new_axis = axes[position], new[position]
        if old_axis is new_axis:
            continue
        if new_axis.is_strict_prefix_of(old_axis):
            if position + 1 == len(new):
                continue
            axes[position:] = [new_axis]
        elif old_axis.is_strict_prefix_of(new_axis):
            if not frozen and position + 1 == len(axes):
                axes[position] = new_axis
                continue
            del axes[position + 1 :]
        else:
            del axes[position:]
        return True
    if not frozen:
        axes.extend(new[len(axes) :])
    return False


def cut_by_other_factors(axis: AxisRef, state: TensorState, factor: int) -> AxisRef | None:
    """The prefix of `axis` that no other factor of the tensor uses; None if there is none."""
    free: AxisRef | None = axis
    for other, found in state.factors.items():
        if other != factor and free is not None:
            free = prefix_without_overlaps(free, found.axes)
            if free is not None and found.overflow:
                free = prefix_without_overlaps(free, found.overflow)
    return free


def cut_within_factor(
    axis: AxisRef, state: TensorState, found: FactorState, size: int, previous: int, mesh: Mesh
) -> AxisRef | None:
    """The prefix of `axis` that this factor of this tensor can take; None if there is none.

    Args:
        axis: The axis to add.
        state: The tensor.
        found: The tensor's state of the factor.
        size: Size of the factor.
        previous: Product of the axes of the candidate list before `axis`.
        mesh: The mesh.
    """
    free = prefix_without_overlaps(axis, state.blocked)
    if free is None:
        return None
    for own in found.axes:
        if own.contains(free):
            return free
    if not found.is_closed and not found.overflow:
        if found.is_minor_most:
            return free
        if size % previous == 0:
            part = gcd(size // previous, free.length(mesh))
            if part == free.length(mesh):
                return free
            if part > 1:
                return free.head(part, mesh)
    if found.axes and found.axes[-1].is_prefix_of(free):
        return found.axes[-1]
    return None


class Cutter:
    """Collects the axes of a candidate list up to the first one that a conflict cuts.

    Args:
        mesh: The mesh.
        is_conservative: Whether a sub-axis ends the list.
    """

    def __init__(self, mesh: Mesh, is_conservative: bool) -> None:
        self.mesh = mesh
        self.is_conservative = is_conservative
        self.kept: list[AxisRef] = []
        self.product = 1

    def take(self, axis: AxisRef, rest: AxisRef | None) -> bool:
        """Keep `rest`, the uncut part of `axis`; return whether the list may go on."""
        if rest is None or (self.is_conservative and not rest.is_full):
            return False
        self.kept.append(rest)
        self.product *= rest.length(self.mesh)
        return rest is axis
