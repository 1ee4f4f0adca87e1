"""Asks a compiler for its programs of the best plans, and orders the plans by what these cost.

The best one is compiled to the end: only that says for sure whether it fits. If it does not fit, the next one is
compiled too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyshardy.core.mesh import Mesh, largest_mesh
from pyshardy.errors import ShardyError, UsageError
from pyshardy.ir.module import Module
from pyshardy.ir.shardings import module_meshes
from pyshardy.propagation.options import PropagateOptions
from pyshardy.report.confirmation import memory_peak
from pyshardy.report.plan import THE_PLAN, CompiledRow, PlanRow
from pyshardy.results.partition import partition_of
from pyshardy.searching.autopartition.space import Assignment
from pyshardy.searching.planning.constraining import ConstrainedAssignment
from pyshardy.searching.planning.options import SearchOptions
from pyshardy.searching.program.to_the_end import compiled_to_the_end, needed_bytes

AS_GIVEN = "as it was given"
"""The name of the program with the shardings that the user gave it."""
MOST_RIVALS = 6
"""The number of plans that the compiler is asked about."""
MOST_EXPERTS = 3
"""The number of experts' plans among them."""
_MOST_COMPILED = 3
"""The number of plans that are compiled to the end: more than one only if the best one does not fit."""
_TO_THE_END_S = 180.0
"""The limit of one such compilation, in seconds."""


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
    failed = _compile(found, options, say)
    row, plan = found[0] if not found[0][0].refusal else next(pair for pair in found if pair[1] is rivals[0])
    names = {id(rivals[0]): THE_PLAN} if plan is rivals[0] else {
        id(rivals[0]): "the best plan by estimates", id(plan): THE_PLAN
    }  # fmt: skip
    rows = tuple(replace(one, name=names.get(id(rival), rival.row.name)) for one, rival in found)
    return Confirmed(compiler, plan, rows, (*_notes(plan, plan is rivals[0], compiler), *failed))


def _compile(found: list[tuple[CompiledRow, Rival]], options: SearchOptions, say: Callable[[str], None]) -> list[str]:
    """Sort plans by what the compiler's programs cost, and compile the best one to the end until it fits.

    Args:
        found: The plans with these costs.
        options: The options of the search.
        say: Takes the progress.

    Returns:
        A remark, if a program could not be compiled to the end.
    """
    for tries in range(_MOST_COMPILED + 1):
        found.sort(key=lambda pair: (bool(pair[0].refusal), *options.objective.rank(pair[0])))
        row, rival = found[0]
        if tries == _MOST_COMPILED or row.refusal or not row.fits or row.needed_bytes is not None:
            break
        say(f"compiling to the end: {row.name}")
        try:
            needed, is_refused = _needed(rival.module, options)
        except ShardyError as error:
            why = error.got or error
            return [f"the memory of the plan is estimated: {options.compiler} did not compile it to the end: {why}"]
        fits = not is_refused and needed <= options.limit
        bytes = row.bytes if fits else max(row.bytes, needed)
        found[0] = replace(row, needed_bytes=needed, fits=fits, bytes=bytes), rival
    return []


def _needed(module: Module, options: SearchOptions) -> tuple[int, bool]:
    """The peak memory of a plan's program, compiled to the end, and whether the compiler says that it does not fit.

    The memory is 0 if the compiler says no more than that.

    Raises:
        ShardyError: The compiler refuses it for another reason, crashes, or takes too long.
    """
    mesh = largest_mesh(module_meshes(module.root)) or Mesh(())
    try:
        program, refused = compiled_to_the_end(module, options.compiler, mesh, _TO_THE_END_S, shortened=True)
    except UsageError:  # no layers that repeat outside of loops: it is compiled whole
        program, refused = compiled_to_the_end(module, options.compiler, mesh, _TO_THE_END_S, shortened=False)
    if program is None:
        return needed_bytes(refused or "") or 0, True
    if not program.memory:
        raise ShardyError("compiling a plan to the end", got="a program without figures of its memory")
    return memory_peak(program.memory), False


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
