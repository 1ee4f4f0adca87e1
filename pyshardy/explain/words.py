"""Sentences that say why a dimension was not sharded."""

from __future__ import annotations

from collections.abc import Callable

from pyshardy.core.axes import AxisRef
from pyshardy.core.sharding import TensorSharding
from pyshardy.explain.explanation import StayedWhole
from pyshardy.explain.names import Names, place_text
from pyshardy.explain.origins import OriginKind, annotation_of
from pyshardy.explain.reason import Level, Reason, ReasonKind

_HOW = {
    Level.GIVEN: "which an annotation gave it",
    Level.USER_PRIORITY: "which came first by user priority",
    Level.OP_PRIORITY: "which came first, because its op takes part in an earlier round of op priorities",
    Level.STRATEGY: "which won, because its tensor is larger or comes first",
    Level.ORDER: "which came first in the order of the program",
}


def axes_text(axes: tuple[AxisRef, ...]) -> str:
    """Axes as text, with commas between them."""
    return ", ".join(map(str, axes))


def dims_text(sharding: TensorSharding | None, rank: int) -> str:
    """The dimensions of a sharding: `[{"data"}, {}]`."""
    if sharding is not None and sharding.rank != rank:
        return "on one device"
    dims = ["{" + ("" if sharding is None else axes_text(sharding.dims[dim].axes)) + "}" for dim in range(rank)]
    unreduced = "" if sharding is None or not sharding.unreduced else f" unreduced {axes_text(sharding.unreduced)}"
    return "[" + ", ".join(dims) + "]" + unreduced


def stayed_whole(reason: Reason, value: int, dim: int, names: Names) -> StayedWhole:
    """The sentence for a reason.

    Args:
        reason: Why the dimension stayed whole.
        value: The value.
        dim: The dimension of the value.
        names: The names of values and ops.
    """
    text = (
        _closed(reason, value, dim, names) if reason.kind is ReasonKind.CLOSED else _TEXTS[reason.kind](reason, names)
    )
    axis = None if reason.axis is None else str(reason.axis)
    level = None if reason.level is None else reason.level.value
    return StayedWhole(reason.kind.value, text, axis, level)


def _asked(reason: Reason, names: Names) -> str:
    """The axis that the dimension lacks, the tensor that has it, and the op between them."""
    assert reason.asker is not None
    assert reason.op is not None
    value, dim = reason.asker
    return f"{reason.axis} on dimension {dim} of {names.value(value)} would come through {names.op(reason.op)}"


def _closed(reason: Reason, value: int, dim: int, names: Names) -> str:
    text = f"because it is closed: {_closing(value, dim, names)} keeps it whole"
    return text if reason.asker is None else f"{text}; otherwise {_asked(reason, names)}"


def _closing(value: int, dim: int, names: Names) -> str:
    origin = annotation_of(value, dim, names.subject, names)
    at = "" if origin.op is None else place_text(names.label(origin.op))
    if origin.kind is OriginKind.CONSTRAINT:
        return f"the sharding constraint{at}"
    if origin.kind is OriginKind.MANUAL:
        return f"the manual computation{at}"
    of = {OriginKind.ARGUMENT: "input ", OriginKind.OUTPUT: "output "}.get(origin.kind, "")
    return f"the annotation of {of}{origin.name}"


def _scalar(reason: Reason, names: Names) -> str:
    return "because its size is 1"


def _replicated(reason: Reason, names: Names) -> str:
    return f"because its annotation keeps {reason.axis} replicated in this value; otherwise {_asked(reason, names)}"


def _taken(reason: Reason, names: Names) -> str:
    assert reason.winner is not None
    assert reason.level is not None
    by = f"{reason.held} is taken by dimension {reason.winner[1]}, {_HOW[reason.level]}"
    return f"because {by}; otherwise {_asked(reason, names)}"


def _conflict(reason: Reason, names: Names) -> str:
    assert reason.winner is not None
    assert reason.level is not None
    assert reason.held is not None
    assert reason.axis is not None
    value, dim = reason.winner
    both = f"{_asked(reason, names)}, and {names.value(value)} has {reason.held} on dimension {dim}"
    if not reason.held.overlaps(reason.axis):
        return f"because of a conflict: {both}; the axes differ, so neither moves on"
    return f"because of a conflict: {both}, {_HOW[reason.level]}"


def _not_divisible(reason: Reason, names: Names) -> str:
    return f"because its size is not divisible: {_asked(reason, names)}, but does not divide what it would split"


def _blocked(reason: Reason, names: Names) -> str:
    return f"because {_asked(reason, names)}, but the rule of that op blocks this dimension"


def _gaps(reason: Reason, names: Names) -> str:
    inner = "it splits an inner part of this dimension, and the outer part is not split completely"
    return f"because {_asked(reason, names)}, but {inner}, so shards would have gaps"


def _follows(reason: Reason, names: Names) -> str:
    assert reason.winner is not None
    value, dim = reason.winner
    which = f"dimension {dim} of {names.value(value)}"
    follow = "operands of an elementwise op follow its result"
    return f"because {follow}, and {which} is whole; otherwise {_asked(reason, names)}"


def _manual(reason: Reason, names: Names) -> str:
    assert reason.op is not None
    where = names.op(reason.op)
    return f"because {reason.axis} is a manual axis of {where}, and the body sees only the part of one device along it"


def _no_rule(reason: Reason, names: Names) -> str:
    assert reason.op is not None
    return f"because no sharding rule is known for {names.op(reason.op)}, so nothing propagates through it"


def _dropped(reason: Reason, names: Names) -> str:
    return f"because {_asked(reason, names)}, but the other axes of its tensors leave no room for it"


def _lost(reason: Reason, names: Names) -> str:
    assert reason.winner is not None and reason.first is not None
    value, dim = reason.winner
    why = stayed_whole(reason.first, value, dim, names).text
    return f"because {reason.axis} was lost before: dimension {dim} of {names.value(value)} is whole, {why}"


def _nobody(reason: Reason, names: Names) -> str:
    return "because nobody asked: nothing that shares this dimension has an axis on it; annotate it to split it"


_TEXTS: dict[ReasonKind, Callable[[Reason, Names], str]] = {
    ReasonKind.SCALAR: _scalar,
    ReasonKind.REPLICATED: _replicated,
    ReasonKind.TAKEN: _taken,
    ReasonKind.CONFLICT: _conflict,
    ReasonKind.NOT_DIVISIBLE: _not_divisible,
    ReasonKind.BLOCKED: _blocked,
    ReasonKind.MANUAL: _manual,
    ReasonKind.GAPS: _gaps,
    ReasonKind.FOLLOWS: _follows,
    ReasonKind.NO_RULE: _no_rule,
    ReasonKind.DROPPED: _dropped,
    ReasonKind.LOST: _lost,
    ReasonKind.NOBODY: _nobody,
}
