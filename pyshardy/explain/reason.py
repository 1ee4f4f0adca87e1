"""The reasons why a dimension was not sharded, as plain data."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from pyshardy.core.axes import AxisRef


class ReasonKind(Enum):
    """The kinds of reasons why a dimension was not sharded, the most important first."""

    SCALAR = "size one"
    CLOSED = "closed"
    REPLICATED = "replicated"
    TAKEN = "taken"
    CONFLICT = "conflict"
    NOT_DIVISIBLE = "not divisible"
    BLOCKED = "blocked"
    MANUAL = "manual"
    GAPS = "gaps"
    FOLLOWS = "follows the result"
    NO_RULE = "no rule"
    DROPPED = "dropped"
    LOST = "lost before"
    NOBODY = "nobody asked"


class Level(Enum):
    """What decided a conflict."""

    GIVEN = "annotation"
    USER_PRIORITY = "user priority"
    OP_PRIORITY = "op priority"
    STRATEGY = "strategy"
    ORDER = "order"


class Reason(NamedTuple):
    """One reason.

    Attributes:
        kind: Its kind.
        axis: The axis that did not propagate; None if there is none.
        op: The op that would have propagated it; None if no op is involved.
        asker: The value that has the axis, and its dimension; None if there is none.
        winner: The value that prevented it, and its dimension: for `TAKEN`, the value itself and the dimension that has
            the axis; for `CONFLICT`, another value; for `LOST`, the value that lost it. None if there is none.
        level: What decided a conflict.
        held: The axis of the winner.
        first: For `LOST`, why the axis was lost there.
    """

    kind: ReasonKind
    axis: AxisRef | None = None
    op: int | None = None
    asker: tuple[int, int] | None = None
    winner: tuple[int, int] | None = None
    level: Level | None = None
    held: AxisRef | None = None
    first: Reason | None = None
