"""Asks a compiler for its programs of the best plans, and orders the plans by what these cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyshardy.errors import ShardyError
from pyshardy.ir.module import Module
from pyshardy.propagation.options import PropagateOptions
from pyshardy.report.plan import THE_PLAN, CompiledRow, PlanRow
from pyshardy.results.partition import partition_of
from pyshardy.searching.autopartition.space import Assignment
from pyshardy.searching.planning.constraining import ConstrainedAssignment
from pyshardy.searching.planning.options import SearchOptions

AS_GIVEN = "as it was given"
"""The name of the program with the shardings that the user gave it."""
MOST_RIVALS = 6
"""The number of plans that the compiler is asked about."""
MOST_EXPERTS = 3
"""The number of experts' plans among them."""


@dataclass(frozen=True, slots=True)
class Rival:
    """A plan that the compiler is asked about, or the program as it was given.

    Attributes:
        row: Its estimate, with its name.
        module: The program with its shardings.
        assignment: The shardings of inputs; None for the program as it was given.
        constrained: The constraints, if there are any.
    """

    row: PlanRow
    module: Module
    assignment: Assignment | None = None
    constrained: ConstrainedAssignment | None = None


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What a compiler says of the best plans.

    Attributes:
        compiler: The compiler, its version, and the devices.
        plan: The best plan by the compiler's programs; the first one if it refused all of them.
        rows: The costs of the compiler's programs, the best first.
        notes: What else there is to know.
    """

    compiler: str
    plan: Rival
    rows: tuple[CompiledRow, ...]
    notes: tuple[str, ...]


def confirmed(rivals: Sequence[Rival], options: SearchOptions, say: Callable[[str], None]) -> Confirmed:
    """The order of plans by the programs that a compiler makes of them.

    Args:
        rivals: The plans, the best by estimates first, and the program as it was given.
        options: The options of the search, which name the compiler.
        say: Takes the progress.
    """
    compiler, found = options.compiler, []
    for rival in rivals:
        say(f"asking {options.compiler}: {rival.row.name}")
        row, speaker = _asked(rival, options)
        compiler = speaker or compiler
        found.append((row, rival))
    found.sort(key=lambda pair: (bool(pair[0].refusal), *options.objective.rank(pair[0])))
    row, plan = found[0] if not found[0][0].refusal else next(pair for pair in found if pair[1] is rivals[0])
    names = {id(rivals[0]): THE_PLAN} if plan is rivals[0] else {
        id(rivals[0]): "the best plan by estimates", id(plan): THE_PLAN
    }  # fmt: skip
    rows = tuple(replace(one, name=names.get(id(rival), rival.row.name)) for one, rival in found)
    return Confirmed(compiler, plan, rows, tuple(_notes(plan, plan is rivals[0], compiler)))


def _asked(rival: Rival, options: SearchOptions) -> tuple[CompiledRow, str]:
    """The cost of the program that the compiler makes of a plan, and who spoke."""
    row = CompiledRow(rival.row.name, 0.0, 0.0, False, 0, rival.row.seconds, rival.row.sent_bytes)
    try:
        part = partition_of(rival.module, PropagateOptions(compiler=options.compiler))
        found = options.cost(part)
    except ShardyError as error:
        return replace(row, refusal=error.got or str(error)), ""
    row = replace(
        row,
        seconds=found.step_seconds,
        bytes=float(found.peak_bytes),
        fits=found.peak_bytes <= options.limit,
        communication_seconds=found.estimate.communication_seconds,
        sent_bytes=sum(one.sent_bytes_per_device for one in found.estimate.collectives),
        replicated_bytes=sum(one.bytes for one in part.replications),
    )
    return row, str(part.answer)


def _notes(plan: Rival, is_first: bool, compiler: str) -> list[str]:
    """What the order of the compiler's programs means for the plan."""
    if plan.assignment is None:
        return [f"as {compiler} makes it, the program as it was given is better than every plan: it is the plan"]
    if is_first:
        return []
    return [f"by estimates another plan is better; by the programs that {compiler} makes, this one is"]
