"""A plan on a page: its rules, and what it was chosen from, by time and memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pyshardy.core.spec import format_spec
from pyshardy.report.plan import THE_PLAN, PlanRow, PlanSummary
from pyshardy.source.places import format_place

_MOST_ROWS: Final = 40
ROW_KINDS: Final = ("the plan", "experts' and the given", "other candidates")
"""What a row of the picture is."""


def plan_data(found: PlanSummary) -> dict[str, Any]:
    """The data of the card that shows a plan.

    Args:
        found: The plan.
    """
    return {
        "hardware": found.hardware,
        "mesh": [[name, size] for name, size in found.mesh],
        "goal": found.goal,
        "limit": found.limit,
        "kinds": list(ROW_KINDS),
        "rules": [[rule.pattern, rule.count, format_spec(rule.axes)] for rule in found.rules if rule.count],
        "constraints": [
            [format_place((one.file, one.line, one.column), only_name=True), one.value, format_spec(one.axes), one.why]
            for one in found.constraints
        ],
        "rows": [[row.name, row.seconds, row.bytes, row.fits, kind] for row, kind in _rows(found)],
        "notes": list(found.notes),
    }


def _rows(found: PlanSummary) -> Iterator[tuple[PlanRow, int]]:
    """The plan, the rows beside it, and the other candidates; each with its kind."""
    yield found.chosen, 0
    for row in found.rows[:_MOST_ROWS]:
        yield row, ROW_KINDS.index("experts' and the given")
    seen = {(row.seconds, row.bytes) for row in (found.chosen, *found.rows)}
    for row in found.front[:_MOST_ROWS]:
        if (row.seconds, row.bytes) not in seen and row.name != THE_PLAN:
            yield row, ROW_KINDS.index("other candidates")
