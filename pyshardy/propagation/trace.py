"""The steps of propagation: every axis placed on every value, and where it came from."""

from __future__ import annotations

from dataclasses import dataclass

from pyshardy.core.axes import Axes
from pyshardy.propagation.program import Direction
from pyshardy.propagation.step import Strategy


@dataclass(frozen=True, slots=True)
class Step:
    """Axes placed on one dimension factor of one value.

    Attributes:
        number: Number of the visit, counting only visits that moved axes; a copy between the members of a sharding
            group belongs to the visit that caused it.
        op: Number of the op that the axes moved through; `MAIN_RESULT` for the returned values of the main function,
            `GROUP_STEP` for a copy between the members of a sharding group.
        source: The value (its holder) that had the axes before; None if unknown.
        target: The value (its holder) that received them.
        source_tensor: The source among the tensors of the op's rule, operands first; None if unknown.
        target_tensor: The target among these tensors.
        dim: The dimension of the target.
        factor: The factor of the op's rule.
        axes: The axes, major to minor.
        is_kept: Whether the target has them afterwards; writing drops axes that would need a strided layout.
        direction: The allowed direction of the factor.
        strategy: How conflicts were resolved.
        user_priority: The user priority of the round.
        op_priority: The op-priority round, 0 to 4.
    """

    number: int
    op: int
    source: int | None
    target: int
    source_tensor: int | None
    target_tensor: int
    dim: int
    factor: int
    axes: Axes
    is_kept: bool
    direction: Direction
    strategy: Strategy
    user_priority: int
    op_priority: int


MAIN_RESULT = -1
GROUP_STEP = -2
ERASED = -3
