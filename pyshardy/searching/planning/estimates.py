"""The estimates of the candidates of a search."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from pyshardy.costing.step_cost import StepCost
from pyshardy.report.plan import PlanRow
from pyshardy.searching.autopartition.explore import Explorer
from pyshardy.searching.autopartition.space import Assignment
from pyshardy.searching.planning.options import SearchOptions

_EQUAL: Final = 1e-3
"""Up to this part, estimates are equal."""


@dataclass(slots=True)
class Estimates:
    """The costs of candidates.

    Attributes:
        options: The options of the search.
        explorer: The search with the rough estimates.
        checker: The search with the exact estimates.
        is_like_whole: Whether exact estimates are known to equal those of `pyshardy.cost`: no layer is left out, or the
            figures of a partitioned candidate agreed. Layers may differ where the partitioner treats them unlike.
        wholes: The candidates that were partitioned, with the result of `pyshardy.cost`; None if that fails.
        preferred: The candidate that is taken as the best one, as it is simpler and next to nothing worse.
    """

    options: SearchOptions
    explorer: Explorer
    checker: Explorer
    is_like_whole: bool
    wholes: dict[Assignment, PlanRow | None] = field(default_factory=dict)
    preferred: Assignment | None = None

    def best(self) -> tuple[PlanRow, Assignment] | None:
        """The best of the partitioned candidates."""
        if self.preferred is not None and (row := self.wholes[self.preferred]) is not None:
            return row, self.preferred
        found = [(row, assignment) for assignment, row in self.wholes.items() if row is not None]
        return min(found, key=lambda pair: (*self.options.objective.rank(pair[0]), pair[1]), default=None)

    def learn(self, assignment: Assignment) -> None:
        """Compare the exact estimate of a partitioned candidate with `pyshardy.cost`: are all figures equal?"""
        whole, exact = self.wholes.get(assignment), self.checker.found.get(assignment)
        if whole is not None and exact is not None:
            self.is_like_whole = all(
                math.isclose(*pair, rel_tol=_EQUAL)
                for pair in ((whole.seconds, exact.seconds), (whole.bytes, exact.bytes))
            )

    def row_of(self, name: str, assignment: Assignment) -> PlanRow | None:
        """The row of an assignment with its most exact estimate; None if it was not priced.

        Args:
            name: The name of the row.
            assignment: The assignment.
        """
        assignment = self.explorer.symmetry.first(assignment)
        whole = self.wholes.get(assignment)
        if whole is not None:
            return replace(whole, name=name)
        exact, rough = self.checker.found.get(assignment), self.explorer.found.get(assignment)
        if exact is not None:
            return self.exact_row(name, exact)
        if rough is not None:
            return row_of(name, rough, self.explorer.limit)
        return None

    def exact_row(self, name: str, exact: StepCost) -> PlanRow:
        """The row of an exact estimate.

        If exact estimates are not known to equal `pyshardy.cost`, it is not called exact. Then it is corrected by the
        factor between the two for the best plan.
        """
        best = None if self.is_like_whole else self.best()
        own = None if best is None else self.checker.found.get(best[1])
        if best is not None and own is not None and own.seconds and own.bytes:
            exact = exact.scaled(best[0].seconds / own.seconds, best[0].bytes / own.bytes)
        return row_of(name, exact, self.options.limit, self.is_like_whole)

    def front(self, others: Iterable[PlanRow]) -> Iterator[PlanRow]:
        """The partitioned or exactly estimated candidates that no other beats in time and memory at once.

        Args:
            others: Further rows, such as the plan and plans of experts with constraints.
        """
        known = dict.fromkeys([*self.wholes, *self.checker.found])
        rows = [row for row in (self.row_of("", one) for one in known) if row is not None]
        rows = [*(replace(row, name="") for row in others), *rows]
        least = math.inf
        for row in sorted(rows, key=lambda row: (row.seconds, row.bytes)):
            if row.bytes < least * 0.99:
                least = row.bytes
                yield row


def row_of(name: str, cost: StepCost, limit: float, is_exact: bool = False) -> PlanRow:
    """The row of an estimate of the search.

    Args:
        name: The name of the row.
        cost: The estimate.
        limit: The bytes that a device may use by it.
        is_exact: Whether it is that of `pyshardy.cost`.
    """
    sending = cost.communication_seconds
    return PlanRow(name, cost.seconds, cost.bytes, cost.bytes <= limit, is_exact, communication_seconds=sending)


def step_cost_of(row: PlanRow) -> StepCost:
    """The figures of a row, as those of candidates."""
    return StepCost(row.seconds, row.bytes, row.communication_seconds)
