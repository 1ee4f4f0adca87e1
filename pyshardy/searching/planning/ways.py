"""Searches several versions of a program, over other meshes or trained in other ways, and chooses the best plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pyshardy.errors import ShardyError, UsageError
from pyshardy.ir.module import Module
from pyshardy.report.cost import format_duration
from pyshardy.report.plan import CompiledRow, PlanRow
from pyshardy.results.plan import Plan
from pyshardy.searching.autopartition.objective import Goal, Objective
from pyshardy.searching.planning.estimates import row_of
from pyshardy.searching.planning.options import Keep, SearchOptions
from pyshardy.searching.planning.search import Search
from pyshardy.searching.program.search_program import DOING

_SEARCHED = 2
"""The number of ways that are searched; the others are looked at."""

Row = TypeVar("Row", bound=PlanRow | CompiledRow)

_EQUAL = 0.01
"""Two ways count as equal if they differ by at most this share."""


@dataclass(frozen=True, slots=True)
class TriedWay:
    """A version of a program.

    Attributes:
        name: What it is, for the table of the plan.
        load: Loads it.
        notes: Gives what a user has to do for it.
        order: The smallest comes first of ways that look equal.
        devices: The number of devices, if that is chosen, too; else 0.
    """

    name: str
    load: Callable[[], Module]
    notes: Callable[[], Sequence[str]] = tuple
    order: tuple[int, ...] = ()
    devices: int = 0

    def counted(self, row: Row, objective: Objective) -> Row:
        """A row with the seconds that decide between ways: with those of all its devices, if these are to be few."""
        if objective.goal is not Goal.CHIP_SECONDS or not self.devices:
            return row
        seconds, sending = row.seconds * self.devices, row.communication_seconds * self.devices
        return replace(row, seconds=seconds, communication_seconds=sending)


def best_of(
    ways: Sequence[TriedWay], options: SearchOptions, keep: Keep, say: Callable[[str], None], needed: str
) -> Plan:
    """The best plan of several versions of a program: tactics are tried on each, the best two are searched.

    Args:
        ways: The versions.
        options: The options of the search.
        keep: What is kept.
        say: Takes the progress.
        needed: What is needed, if no version can be searched.

    Raises:
        UsageError: No version can be searched.
    """
    started = time.monotonic()
    rows: dict[str, PlanRow] = {}
    refused: ShardyError | None = None
    for way in ways:
        share = max(0.5, (options.budget_s / 3 - (time.monotonic() - started)) / len(ways))
        try:
            row = _looked_at(way, replace(options, budget_s=share), keep, say)
        except UsageError as error:
            if not isinstance(keep, Mapping):
                raise
            refused = error  # a sharding to keep may need an axis that this mesh does not have
            continue
        if row is not None:
            rows[way.name] = replace(row, devices=way.devices)
    chosen = _ordered([way for way in ways if way.name in rows], rows, options.objective)
    if not chosen:
        raise refused or UsageError(DOING, got=", ".join(way.name for way in ways), needed=needed)
    left = max(1.0, options.budget_s - (time.monotonic() - started)) / len(chosen[:_SEARCHED])
    plans = []
    for way in chosen[:_SEARCHED]:
        say(f"searching {way.name}")
        plan = Search(way.load(), replace(options, budget_s=left), keep, say).run()
        rows[way.name] = replace(plan.summary.chosen, name=way.name, devices=way.devices)
        plans.append((plan, way))
    objective = options.objective
    plan, way = min(plans, key=lambda pair: objective.rank(pair[1].counted(pair[0].summary.final, objective)))
    table = tuple(rows[way.name] for way in _sorted([way for way in ways if way.name in rows], rows, objective))
    notes = (*way.notes(), *plan.summary.notes)
    return replace(plan, summary=replace(plan.summary, way=way.name, ways=table, notes=notes))


def _ordered(ways: list[TriedWay], rows: Mapping[str, PlanRow], objective: Objective) -> list[TriedWay]:
    """Ways by their estimates, the best first; those about as good as the best one by their own order."""
    ways = _sorted(ways, rows, objective)
    counted = [way.counted(rows[way.name], objective) for way in ways]
    equal = [way for way, row in zip(ways, counted) if not objective.is_better(counted[0], row, _EQUAL)]
    return sorted(equal, key=lambda way: way.order) + [way for way in ways if way not in equal]


def _sorted(ways: Sequence[TriedWay], rows: Mapping[str, PlanRow], objective: Objective) -> list[TriedWay]:
    return sorted(ways, key=lambda way: objective.rank(way.counted(rows[way.name], objective)))


def _looked_at(way: TriedWay, options: SearchOptions, keep: Keep, say: Callable[[str], None]) -> PlanRow | None:
    """The estimate of the best tactic; None if none propagates."""
    cost = Search(way.load(), options, keep, say).look()
    if cost is None:
        return None
    say(f"{way.name}: about {format_duration(cost.seconds)}")
    return row_of(way.name, cost, options.limit)
