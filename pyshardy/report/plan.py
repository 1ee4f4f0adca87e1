"""A plan of shardings as plain data and as tables."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pyshardy.core.spec import format_spec
from pyshardy.report.constraints import PlanConstraint, worth
from pyshardy.report.cost import format_duration, without_unpriced
from pyshardy.report.places import format_place
from pyshardy.report.printing import Page, rendered
from pyshardy.report.summary import format_bytes, format_shape

_MOST_ROWS = 12


@dataclass(frozen=True, slots=True)
class PlanSpec:
    """The sharding of a group of inputs or outputs.

    Attributes:
        name: The name of the group; `[*]` stands for every layer.
        shape: The shape of each tensor.
        element: The element type in MLIR's notation.
        axes: The mesh axes of each dimension, major to minor.
        count: The number of tensors in the group.
        is_output: Whether the tensors are outputs.
    """

    name: str
    shape: tuple[int, ...]
    element: str
    axes: tuple[tuple[str, ...], ...]
    count: int
    is_output: bool = False


@dataclass(frozen=True, slots=True)
class PlanRow:
    """The estimated cost of one way to shard the program.

    Attributes:
        name: The tactic or the change, in words.
        seconds: Estimated time of a step.
        bytes: Estimated peak memory of a device.
        fits: Whether the peak is within the limit.
        is_exact: Whether the figures are those of `pyshardy.cost`; otherwise they are quicker estimates of the search.
        unpriced: The names of ops without a price, which the time leaves out, and how often they run.
    """

    name: str
    seconds: float
    bytes: float
    fits: bool
    is_exact: bool
    unpriced: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class PlanReason:
    """What one decision is worth.

    Attributes:
        decision: The decision in words.
        seconds: How much longer a step takes without the decision, by a quicker estimate; negative if it is faster.
        bytes: How much more memory a device needs without it; negative if it needs less.
    """

    decision: str
    seconds: float
    bytes: float


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """A plan as plain data.

    Attributes:
        hardware: The name of the chip.
        mesh: The name and size of every mesh axis.
        collectives: The model that priced collectives.
        limit: The bytes that a device may use.
        specs: The shardings.
        chosen: The cost of the plan.
        rows: The cost of other ways: the program as it was given, and experts' tactics.
        front: Other candidates; each is the fastest that needs at most its memory.
        reasons: What the decisions are worth.
        candidates: The number of candidates that the search priced.
        exact: The number of candidates that got a careful estimate.
        seconds: How long the search took.
        seed: The seed of random choices.
        ended_by: "nothing better", "time", "candidates" or "interruption".
        notes: What else there is to know.
        constraints: The shardings of intermediate values.
        bound: The seconds that no plan for the program on this mesh can be faster than, by the cost model; 0 if none.
        all_tried: The number of all shardings of inputs, if all were tried and none is better; else 0.
    """

    hardware: str
    mesh: tuple[tuple[str, int], ...]
    collectives: str
    limit: float
    specs: tuple[PlanSpec, ...]
    chosen: PlanRow
    rows: tuple[PlanRow, ...]
    front: tuple[PlanRow, ...]
    reasons: tuple[PlanReason, ...]
    candidates: int
    exact: int
    seconds: float
    seed: int
    ended_by: str
    notes: tuple[str, ...]
    constraints: tuple[PlanConstraint, ...] = ()
    bound: float = 0.0
    all_tried: int = 0


def plan_tables(found: PlanSummary) -> Page:
    """The shardings of a plan, its cost, the cost of alternatives, and the reasons, for a `rich` console."""
    parts: list[RenderableType] = [_heading(found), ""]
    if found.specs:
        parts += [_specs(found), ""]
    if found.constraints:
        parts += [_constraints(found), ""]
    parts.append(_costs(found))
    if found.reasons:
        parts += ["", Text("the value of every decision (by a quicker estimate without it)", style="bold")]
        parts += [Text("  " + sentence(reason)) for reason in found.reasons]
    if len(found.front) > 1:
        parts += ["", _front(found)]
    parts += [Text(f"note: {note}", style="dim") for note in found.notes]
    return rendered(Group(*parts))


def sentence(reason: PlanReason) -> str:
    """A sentence on the value of a decision.

    >>> sentence(PlanReason("'data' on x", 0.012, -1024.0))
    "without 'data' on x a step takes 12.0 ms longer, and a device needs 1.0 KiB less"
    """
    return f"without {reason.decision} {worth(reason.seconds, reason.bytes)}"


def _heading(found: PlanSummary) -> Text:
    devices = 1
    for _, size in found.mesh:
        devices *= size
    text = Text(f"plan for {devices} x {found.hardware}, mesh ", style="bold")
    text.append(", ".join(f"{name}={size}" for name, size in found.mesh))
    chosen = found.chosen
    verdict = "fits in" if chosen.fits else "does NOT fit in"
    text.append(
        f"\nestimated step {format_duration(chosen.seconds)}{without_unpriced(chosen.unpriced)}, "
        f"peak {format_bytes(round(chosen.bytes))}, which "
        f"{verdict} {format_bytes(round(found.limit))}; all figures are estimates, none is measured",
        style="" if chosen.fits else "red",
    )
    text.append(
        f"\n{found.candidates} candidates, {found.exact} of them estimated carefully, in {found.seconds:.1f} s; "
        f"ended by {found.ended_by}; seed {found.seed}",
        style="dim",
    )
    for sure in certainty(found):
        text.append(f"\n{sure}", style="dim")
    return text


def certainty(found: PlanSummary) -> list[str]:
    """What is proven of a plan, by the cost model, in sentences; nothing if nothing is."""
    said = []
    if found.all_tried:
        said.append(f"all {found.all_tried} shardings that inputs may have were tried: none is better")
    if found.bound:
        times = found.chosen.seconds / found.bound
        said.append(
            f"products alone take {format_duration(found.bound)} however they are sharded: the plan takes at most "
            f"{times:.2f} times as long as the best one"
        )
    return said


def _titled(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", header_style="bold", show_edge=False)


def _specs(found: PlanSummary) -> Table:
    table = _titled("shardings")
    table.add_column("tensors", overflow="fold")
    table.add_column("count", justify="right")
    table.add_column("shape", overflow="fold")
    table.add_column("spec", overflow="fold")
    for spec in found.specs:
        if not spec.is_output:
            table.add_row(spec.name, str(spec.count), format_shape(spec.shape, spec.element), format_spec(spec.axes))
    outputs = sum(spec.count for spec in found.specs if spec.is_output)
    if outputs:
        table.add_row(f"{outputs} outputs", "", "", "as the inputs that they replace")
    return table


def _constraints(found: PlanSummary) -> Table:
    table = _titled("constraints of intermediate values (plan.patch() writes them into the source)")
    table.add_column("after", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_column("count", justify="right")
    table.add_column("shape", overflow="fold")
    table.add_column("spec", overflow="fold")
    table.add_column("why", overflow="fold")
    for one in found.constraints:
        place = format_place((one.file, one.line, one.column), only_name=True)
        shape = format_shape(one.shape, one.element)
        table.add_row(place, one.value, str(one.count), shape, format_spec(one.axes), one.why)
    return table


def _costs(found: PlanSummary) -> Table:
    table = _titled("estimated cost, compared with experts' tactics (~ marks a quicker estimate)")
    table.add_column("", overflow="fold")
    table.add_column("step", justify="right")
    table.add_column("vs. plan", justify="right")
    table.add_column("peak", justify="right")
    table.add_column("fits")
    table.add_row(*_cells(found.chosen, found), style="bold")
    for row in found.rows[:_MOST_ROWS]:
        table.add_row(*_cells(row, found))
    if len(found.rows) > _MOST_ROWS:
        table.add_row(f"{len(found.rows) - _MOST_ROWS} more, slower", "", "", "", "")
    return table


def _front(found: PlanSummary) -> Table:
    table = _titled("time against memory")
    table.add_column("step", justify="right")
    table.add_column("vs. plan", justify="right")
    table.add_column("peak", justify="right")
    table.add_column("fits")
    for row in found.front[:_MOST_ROWS]:
        table.add_row(*_cells(row, found)[1:])
    return table


def _cells(row: PlanRow, found: PlanSummary) -> list[str]:
    about = "" if row.is_exact else "~"
    ratio = f"{row.seconds / found.chosen.seconds:.2f}" if found.chosen.seconds else ""
    bytes_ = format_bytes(round(row.bytes))
    return [row.name, about + format_duration(row.seconds), ratio, about + bytes_, "yes" if row.fits else "no"]
