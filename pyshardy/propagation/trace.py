"""What propagation did, step by step: every axis placed on every value, and where it came from."""

from __future__ import annotations

from dataclasses import dataclass

from pyshardy.core.axes import Axes
from pyshardy.graph.program import Direction
from pyshardy.propagation.step import Strategy


@dataclass(frozen=True, slots=True)
class Step:
    """Axes placed on one dimension factor of one value.

    Attributes:
        number: Number of the visit, counted over those that moved anything; copies between the members of a
            sharding group belong to the visit that caused them.
        op: Number of the op they moved through; `MAIN_RESULT` for the returned values of the main function,
            `GROUP` for a copy between the members of a sharding group.
        source: The value (its holder) that was sharded so before; None if it cannot be told.
        target: The value (its holder) that received them.
        source_tensor: The source among the tensors of the op's rule, operands first; None if it cannot be told.
        target_tensor: The target among them.
        dim: The dimension of the target.
        factor: The factor of the op's rule.
        axes: The axes, major to minor.
        is_kept: Whether the target has them afterwards; writing drops what would need a strided layout.
        direction: The direction that was allowed for the factor.
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
GROUP = -2
