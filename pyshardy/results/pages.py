"""Makes reports, the pages that show results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyshardy.core.options import enum_value
from pyshardy.report.page.render import PageFormat

if TYPE_CHECKING:
    from pyshardy.costing.estimate import Estimate
    from pyshardy.costing.launches import Launches
    from pyshardy.costing.peak import Peak
    from pyshardy.report.diagnosis import Diagnosis
    from pyshardy.report.page.material import PageInput
    from pyshardy.report.plan import PlanSummary
    from pyshardy.results.program_result import PerDevice, ProgramResult

    Run = tuple[Launches, Estimate]

MOST_HINTS = 3
"""The number of conflicts for which to look for a hint."""


def report_bytes(
    results: Sequence[ProgramResult],
    format: PageFormat | str = PageFormat.HTML,
    *,
    hints: bool = True,
    names: Sequence[str] = (),
    diagnoses: Sequence[Diagnosis | None] = (),
    runs: Sequence[Run | None] = (),
    plans: Sequence[PlanSummary | None] = (),
) -> bytes:
    """The report of a result, or of two that are compared.

    Args:
        results: The results.
        format: The format of the report.
        hints: Whether to look for annotations that help.
        names: The names of the results in the report.
        diagnoses: What costs most in each.
        runs: The kernels and the estimate of each, of which the report shows a run.
        plans: The plan that gave the shardings of each.

    Raises:
        UsageError: The format is unknown.
        ShardyError: A program cannot be partitioned.
    """
    kind = enum_value(PageFormat, format, "writing a report", "the format ")
    hints = hints and kind is not PageFormat.MODEL_EXPLORER
    data = [
        describe_result(one, hints, name, diagnosis, run, plan)
        for one, name, diagnosis, run, plan in zip(
            results,
            names or _default_names(results),
            diagnoses or [None] * len(results),
            runs or [None] * len(results),
            plans or [None] * len(results),
        )
    ]
    return kind.write(data)


def describe_result(
    result: ProgramResult,
    hints: bool = True,
    name: str = "",
    diagnosis: Diagnosis | None = None,
    run: Run | None = None,
    plan: PlanSummary | None = None,
) -> dict[str, Any]:
    """The data of the page of a result.

    Args:
        result: The result.
        hints: Whether to look for annotations that help.
        name: The name of the result on the page.
        diagnosis: What costs most.
        run: The kernels and the estimate, of which the page shows a run.
        plan: The plan that gave the shardings.
    """
    from pyshardy.ir.pause_gc import pause_gc
    from pyshardy.report.page.describe import describe
    from pyshardy.report.page.plan import plan_data
    from pyshardy.report.page.run import run_data

    with pause_gc():
        found = _material(result, hints, name, run)
        data, chosen = None if run is None else run_data(*run), None if plan is None else plan_data(plan)
        return describe(replace(found, diagnosis=diagnosis, run=data, plan=chosen))


def _material(result: ProgramResult, hints: bool, name: str, run: Run | None) -> PageInput:
    from pyshardy.explain.collectives import explain_collectives
    from pyshardy.report.cost import cost_figures
    from pyshardy.report.page.material import PageInput

    propagated, part = result.propagated, result.per_device
    why = propagated.why
    hardware, estimate = (None, None) if run is None else (run[0].topology.hardware, run[1])
    stories = part.hints(MOST_HINTS, hardware) if hints else ()
    summary = propagated.summary
    figures: dict[str, str] = {}
    if part.answer is not None:  # the overview names who speaks, and what it gathers whole
        figures["as compiled by"] = str(part.answer)
        summary = replace(summary, warnings=(*dict.fromkeys(map(str, part.replications)), *summary.warnings))
    return PageInput(
        source=name,
        summary=summary,
        why=why,
        traffic=part.traffic,
        found=explain_collectives(why, part.traffic.collectives, part.answer is not None),
        hints={story.reason: story.hint for story in stories if story.hint},
        memory=_peak(part) if estimate is None else estimate.memory,
        cost=tuple((figures | ({} if estimate is None else cost_figures(estimate))).items()),
    )


def _peak(part: PerDevice) -> Peak:
    """The peak memory of a device, as `pyshardy.cost` estimates it where no chip is named."""
    from pyshardy.costing.compilers import ACCELERATOR
    from pyshardy.costing.flatten import flatten
    from pyshardy.costing.lowering import lower
    from pyshardy.costing.peak import find_peak
    from pyshardy.ir.cost_program import cost_program

    program = cost_program(part.module.root, part.meshes, part.before.name)
    return find_peak(program, lower(flatten(program), ACCELERATOR), ACCELERATOR)


def _default_names(results: Sequence[ProgramResult]) -> list[str]:
    titles = [result.title for result in results]
    return (
        titles if len(set(titles)) == len(titles) else [f"{title} ({number})" for number, title in enumerate(titles, 1)]
    )
