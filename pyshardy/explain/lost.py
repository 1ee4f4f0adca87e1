"""Finds where a dimension lost an axis on its way: at which earlier value, and why."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from pyshardy.explain.history import History
from pyshardy.explain.reason import Reason, ReasonKind
from pyshardy.explain.whole import whole_reasons

_LOSSES = frozenset(
    (
        ReasonKind.CLOSED, ReasonKind.REPLICATED, ReasonKind.TAKEN, ReasonKind.CONFLICT, ReasonKind.NOT_DIVISIBLE,
        ReasonKind.BLOCKED, ReasonKind.GAPS, ReasonKind.DROPPED,
    )
)  # fmt: skip
"""The reasons by which a value does not get an axis that another one has."""


def all_reasons(history: History, value: int, dim: int) -> list[Reason]:
    """The reasons why a dimension of a value has no axis, with a loss before instead of "nobody asked".

    Args:
        history: The history of the program.
        value: The holder of the value.
        dim: The dimension.
    """
    found = whole_reasons(history, value, dim)
    if found[-1].kind is ReasonKind.NOBODY:
        lost = lost_before(history, value, dim)
        if lost is not None:
            found[-1] = lost
    return found


def lost_before(history: History, value: int, dim: int) -> Reason | None:
    """The nearest value before, along a dimension, that did not get an axis; None if there never was one.

    It goes from the result of an op to the operands that share the dimension. Answers are kept, so asking for all
    values looks at every value once.

    Args:
        history: The history of the program.
        value: The holder of the value.
        dim: The dimension, which no reason of its own keeps whole.
    """
    start = value, dim
    if start in history.lost:
        return history.lost[start]
    pending, seen = deque([start]), {start}
    found: Reason | None = None
    while pending and found is None:
        for place in _before(history, *pending.popleft()):
            if place in seen:
                continue
            seen.add(place)
            found = history.lost[place] if place in history.lost else _own_loss(history, place)
            if found is not None:
                break
            if place not in history.lost:
                pending.append(place)
    history.lost[start] = found
    if found is None:  # nor is there one before any that was visited
        history.lost.update(dict.fromkeys(seen))
    return found


def _own_loss(history: History, place: tuple[int, int]) -> Reason | None:
    if place not in history.own_losses:
        history.own_losses[place] = _loss(history, *place)
    return history.own_losses[place]


def _before(history: History, value: int, dim: int) -> Iterator[tuple[int, int]]:
    """The operands of the op that computes a value, with the dimensions that share a dimension of it."""
    subject = history.subject
    for op, tensor in subject.readers.get(value, ()):
        rule = subject.rule(op)
        if rule is None or tensor < len(rule.operands) or dim >= len(rule.tensors[tensor]):
            continue
        values = subject.tensors(op)
        for factor in rule.tensors[tensor][dim]:
            for operand, mapping in enumerate(rule.operands):
                at = next((place for place, factors in enumerate(mapping) if factor in factors), None)
                if at is not None and values[operand] >= 0:
                    yield values[operand], at


def _loss(history: History, value: int, dim: int) -> Reason | None:
    """Why a value before did not get an axis on a dimension; None if it has one there, or if nothing has."""
    subject = history.subject
    sharding, shape = subject.sharding(value), subject.program.shapes[value]
    if shape is None or dim >= len(shape) or shape[dim] == 1:
        return None
    if sharding is not None and (sharding.rank != len(shape) or sharding.dims[dim].axes):
        return None
    cause = next((one for one in whole_reasons(history, value, dim) if one.kind in _LOSSES), None)
    if cause is None or cause.axis is None:
        return None
    return Reason(ReasonKind.LOST, cause.axis, cause.op, cause.asker, (value, dim), first=cause)
