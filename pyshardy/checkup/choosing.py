"""Which of the cures that pay is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyshardy.checkup.cures import Cure, gain
from pyshardy.report.diagnosis import Figures, Finding, FindingKind
from pyshardy.results.cost import Cost

_NEAR = 0.8
"""Of cures that save this share of what the best saves, the first in `_ORDER` is chosen."""
_NEAR_IF_CHANGED = 0.9
"""The same for a cure that changes what the user wrote.

The cause of a loss saves as much as a cure further on, as far as estimates can tell; what saves less is another design.
"""
_MOST_TIME = 1.2
"""However much both save, a program that takes this times as long as another is not as good."""
_AS_MUCH = 0.98
"""Of values that lost an axis and are worth this share of the best one, the first of the program is the cause."""
_ADDED = (FindingKind.LOST_AXIS, FindingKind.KERNEL, FindingKind.DONATION)
"""What leaves all annotations that the user wrote."""
_OF_SPECS = (FindingKind.CONFLICT, FindingKind.STATE)
"""What gives inputs other specs."""
_ORDER = (
    FindingKind.RULE, FindingKind.CONSTRAINT, FindingKind.STATE, FindingKind.UNEVEN, FindingKind.LOST_AXIS,
    FindingKind.KERNEL, FindingKind.DONATION, FindingKind.OTHER_OUTPUT, FindingKind.CONFLICT, FindingKind.LAYOUT,
)  # fmt: skip


class Tried(NamedTuple):
    """A cure that pays, and how much; `found` is the estimate of the whole program with it, if that was made.

    Cures that lead to the same program have equal `figures`. They are numbered as they are tried: values in the order
    of the program.
    """

    worth: float
    cure: Cure
    figures: Figures
    found: Cost | None = None
    number: int = 0


def best_of(paying: Sequence[Tried]) -> Tried:
    """The cure that saves most; of those that save about as much, one that mends a cause, and one that is a patch.

    A cure of a fault comes before another design. Only if it computes something else, a design that saves about as much
    may come first.
    """
    faults = [one for one in paying if not one.cure.is_design]
    best = (faults or paying)[0]
    beside = faults if faults and best.cure.is_exact else paying
    near = [
        one
        for one in beside
        if one.worth >= _near(one.cure, best.cure) * best.worth
        and one.figures.seconds <= _MOST_TIME * best.figures.seconds
    ]
    chosen = min(near, key=lambda one: (_rank(one.cure), -one.worth))
    alike = [one for one in near if one.cure.kind is chosen.cure.kind and one.worth >= _AS_MUCH * chosen.worth]
    return min(alike, key=lambda one: one.number) if chosen.cure.kind is FindingKind.LOST_AXIS else chosen


def _near(cure: Cure, best: Cure) -> float:
    """The share of what the best one saves from which on a cure may come first; a patch may save less than none."""
    is_patched = bool(cure.make_patch()) and not best.make_patch()
    return _NEAR if cure.kind in _ADDED or is_patched else _NEAR_IF_CHANGED


def _rank(cure: Cure) -> tuple[bool, bool, int]:
    """The place of a cure among those that save as much.

    Behind others is a spec whose place the user has to find, and what computes something else.
    """
    return cure.kind in _OF_SPECS and not cure.make_patch(), not cure.is_exact, _ORDER.index(cure.kind)


def is_cause(one: Tried, best: Tried) -> bool:
    """Whether a cure is of why the best one pays, as micro-batches are: other results, and about as much saved."""
    is_of_values = best.cure.kind in (FindingKind.LOST_AXIS, FindingKind.LAYOUT) and best.cure.is_exact
    return is_of_values and not one.cure.is_exact and one.worth >= _NEAR * best.worth


def merged(tried: Sequence[Finding], untried: Sequence[tuple[float, Finding]], limit: float) -> list[Finding]:
    """Findings that are tried, in their order, and others by the share that they cost.

    These come each before what saves less, and before other designs.

    Args:
        tried: The findings that are tried.
        untried: The others, each with its share of a step.
        limit: The bytes of memory of a device.
    """
    found: list[Finding] = []
    rest = list(untried)
    for one in tried:
        saved = gain(one.before, one.after, limit) if one.after is not None else 0.0
        while rest and (one.is_design or rest[0][0] > saved):
            found.append(rest.pop(0)[1])
        found.append(one)
    return [*found, *(one for _, one in rest)]
