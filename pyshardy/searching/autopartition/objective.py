"""What a search minimizes: the time of a step, or its memory; the other counts a little."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

LEAST_CONSTRAINT_GAIN: Final = 0.005
"""The share by which constraints must make a plan better; fewer lines are easier to read than slightly better ones."""
_WORTH: Final = 0.01
"""The share of the time that the memory of a whole device is worth: it decides between plans of about equal time."""
TIGHT: Final = 0.9
"""The share of the memory from which on a plan may not fit after all, as estimates err."""
_RISK: Final = 0.05
"""The share of the time that leaving the last tenth of the memory free is worth."""
_TIME: Final = 0.05
"""The power of the time where memory is minimized: twice the time counts like 3.5 % more memory."""
_HIDDEN: Final = 0.01
"""The share of their time that collectives count besides: those that kernels hide take memory bandwidth and cores."""
_ROUNDING: Final = 1e-9
_DIGITS: Final = 9
_PENALTY: Final = 4.0
_MISSING: Final = 1e3
"""The factor on the weight, and what is added to it, per share of the memory that is missing."""


class Goal(Enum):
    """What decides first.

    Attributes:
        TIME: The time of a step.
        MEMORY: The peak memory of a device: what it leaves free is room for a larger batch or a longer sequence.
        CHIP_SECONDS: The time of a step times the number of chips: of several numbers of chips, the one that does most
            for its price, as tokens per chip-second. On one mesh it is the time of a step.
    """

    TIME = "time"
    MEMORY = "memory"
    CHIP_SECONDS = "chip-seconds"


class Estimated(Protocol):
    """An estimate: seconds of a step, peak bytes of a device, and seconds of all collectives, hidden or not."""

    @property
    def seconds(self) -> float: ...  # noqa: D102

    @property
    def bytes(self) -> float: ...  # noqa: D102

    @property
    def communication_seconds(self) -> float: ...  # noqa: D102


class EstimatedPlan(Estimated, Protocol):
    """An estimate that says whether the memory suffices."""

    @property
    def fits(self) -> bool: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Objective:
    """What makes a plan better than another: it fits into memory, then it weighs less.

    Attributes:
        limit: The bytes that a device may use.
        goal: What decides first.
    """

    limit: float
    goal: Goal = Goal.TIME

    def weight(self, one: Estimated) -> float:
        """The quantity to minimize among plans that fit.

        If time is the goal, using the whole memory counts like 1 % more time. Using its last tenth counts like 5 %
        more, as estimates err and it may not be there. So a plan may take a little longer if that leaves much memory
        free. Collectives count 1 % more than they take: hidden ones disturb the kernels that hide them.

        >>> from pyshardy.costing.step_cost import StepCost
        >>> weight = Objective(limit=100.0).weight
        >>> weight(StepCost(1.0, 20.0)) < weight(StepCost(0.995, 80.0))
        True
        >>> weight(StepCost(1.03, 40.0)) < weight(StepCost(1.0, 99.0))
        True
        >>> weight(StepCost(1.03, 40.0)) < weight(StepCost(1.0, 80.0))
        False
        """
        seconds = one.seconds + _HIDDEN * one.communication_seconds
        if self.goal is Goal.MEMORY:
            return _rounded(one.bytes * float(seconds**_TIME))
        share = one.bytes / self.limit
        return _rounded(seconds * (1 + _WORTH * share + _RISK * max(0.0, share - TIGHT) / (1 - TIGHT)))

    def score(self, one: Estimated, limit: float | None = None) -> tuple[float, float]:
        """A sort key of estimates, fitting or not: the weight, with a penalty for missing memory; then the memory.

        Args:
            one: The estimate.
            limit: The bytes that a device may use by this estimate, where it errs to one side.
        """
        over = max(0.0, one.bytes / (self.limit if limit is None else limit) - 1.0)
        most = _MISSING * (self.limit if self.goal is Goal.MEMORY else 1.0)
        return self.weight(one) * (1.0 + _PENALTY * over) + most * over, one.bytes

    def rank(self, plan: EstimatedPlan) -> tuple[bool, float, float]:
        """A sort key: first the plans that fit into memory, by weight; then the others, by memory."""
        return not plan.fits, self.weight(plan) if plan.fits else plan.bytes, plan.bytes

    def is_better(self, plan: EstimatedPlan, other: EstimatedPlan, by: float = _ROUNDING) -> bool:
        """Whether a plan fits and the other does not, or weighs less by a share; if neither fits, if it is smaller.

        Args:
            plan: The plan.
            other: The other plan.
            by: The share; by default more than a rounding error.
        """
        if plan.fits != other.fits or not plan.fits:
            return self.rank(plan) < self.rank(other)
        return self.weight(plan) < self.weight(other) * (1 - by)

    def gains(self, plan: EstimatedPlan, plain: EstimatedPlan) -> bool:
        """Whether a plan with constraints is worth them, beside one without or with others."""
        return self.is_better(plan, plain, LEAST_CONSTRAINT_GAIN)


def _rounded(number: float) -> float:
    """A number without its last digits. Sums differ there between versions of Python, and equal plans must be equal.

    >>> _rounded(0.1 + 0.2) == _rounded(0.3), _rounded(0.0)
    (True, 0.0)
    """
    return float(f"{number:.{_DIGITS}g}")
