"""A plan of shardings as plain data and as tables."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pyshardy.report.constraints import PlanConstraint, spec_text, worth
from pyshardy.report.cost import format_duration
from pyshardy.report.places import format_place
from pyshardy.report.printing import Page, rendered
from pyshardy.report.summary import format_bytes, format_shape

_MOST_ROWS = 12


@dataclass(frozen=True, slots=True)
class PlanSpec:
    """The sharding of inputs or outputs.

    Attributes:
        name: Their name; `[*]` stands for every layer.
        shape: Sizes of their dimensions.
        element: MLIR's text of the element type.
        axes: Per dimension its mesh axes, major to minor.
        count: How many tensors they are.
        is_output: Whether they are outputs.
    """

    name: str
    shape: tuple[int, ...]
    element: str
    axes: tuple[tuple[str, ...], ...]
    count: int
    is_output: bool = False


@dataclass(frozen=True, slots=True)
class PlanRow:
    """What one way to shard the program would cost.

    Attributes:
        name: What it is.
        seconds: Estimated time of a step.
        bytes: Estimated peak memory of a device.
        fits: Whether that is within the limit.
        is_exact: Whether it is what `pyshardy.cost` says; if not, it is a quicker estimate of the search.
    """

    name: str
    seconds: float
    bytes: float
    fits: bool
    is_exact: bool


@dataclass(frozen=True, slots=True)
class Reason:
    """What one decision is worth.

    Attributes:
        decision: The decision in words.
        seconds: How much longer a step takes without it, by a quicker estimate; negative if it is faster.
        bytes: How much more memory it takes.
    """

    decision: str
    seconds: float
    bytes: float


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """All that is said of a plan.

    Attributes:
        hardware: The name of the chip.
        mesh: Name and size of every mesh axis.
        collectives: By which model collectives were priced.
        limit: Bytes that a device may use.
        specs: The shardings.
        chosen: What they would cost.
        rows: What other ways would cost: as the user had it, and what experts do.
        front: Other candidates, each the fastest with so little memory.
        reasons: What the decisions are worth.
        candidates: How many assignments were looked at.
        exact: Of how many of them the program of one device was looked at.
        seconds: How long the search took.
        seed: Of what it chose at random.
        ended_by: "nothing better", "time", "candidates" or "interruption".
        notes: What else there is to know.
        constraints: The shardings of values in between.
    """

    hardware: str
    mesh: tuple[tuple[str, int], ...]
    collectives: str
    limit: float
    specs: tuple[PlanSpec, ...]
    chosen: PlanRow
    rows: tuple[PlanRow, ...]
    front: tuple[PlanRow, ...]
    reasons: tuple[Reason, ...]
    candidates: int
    exact: int
    seconds: float
    seed: int
    ended_by: str
    notes: tuple[str, ...]
    constraints: tuple[PlanConstraint, ...] = ()


def plan_tables(found: PlanSummary) -> Page:
    """The shardings of a plan, what they and others would cost, and why, for a `rich` console."""
    parts: list[RenderableType] = [_heading(found), "", _specs(found), ""]
    if found.constraints:
        parts += [_constraints(found), ""]
    parts.append(_costs(found))
    if found.reasons:
        parts += ["", Text("what decisions are worth (by a quicker estimate, each taken back alone)", style="bold")]
        parts += [Text("  " + sentence(reason)) for reason in found.reasons]
    if len(found.front) > 1:
        parts += ["", _front(found)]
    parts += [Text(f"note: {note}", style="dim") for note in found.notes]
    return rendered(Group(*parts))


def sentence(reason: Reason) -> str:
    """What a decision is worth in words.

    >>> sentence(Reason("'data' on x", 0.012, -1024.0))
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
        f"\nestimated step {format_duration(chosen.seconds)}, peak {format_bytes(round(chosen.bytes))}, which "
        f"{verdict} {format_bytes(round(found.limit))}; all figures are estimates, none is measured",
        style="" if chosen.fits else "red",
    )
    text.append(
        f"\n{found.candidates} candidates, {found.exact} of them looked at carefully, in {found.seconds:.1f} s; "
        f"ended by {found.ended_by}; seed {found.seed}",
        style="dim",
    )
    return text


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
            table.add_row(spec.name, str(spec.count), format_shape(spec.shape, spec.element), spec_text(spec.axes))
    outputs = sum(spec.count for spec in found.specs if spec.is_output)
    if outputs:
        table.add_row(f"{outputs} outputs", "", "", "as the inputs whose place they take")
    return table


def _constraints(found: PlanSummary) -> Table:
    table = _titled("constraints of values in between (plan.patch() writes them into the source)")
    table.add_column("behind", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_column("count", justify="right")
    table.add_column("shape", overflow="fold")
    table.add_column("spec", overflow="fold")
    table.add_column("why", overflow="fold")
    for one in found.constraints:
        place = format_place((one.file, one.line, one.column), only_name=True)
        shape = format_shape(one.shape, one.element)
        table.add_row(place, one.value, str(one.count), shape, spec_text(one.axes), one.why)
    return table


def _costs(found: PlanSummary) -> Table:
    table = _titled("estimated cost beside what experts do (~ is a quicker estimate)")
    table.add_column("", overflow="fold")
    table.add_column("step", justify="right")
    table.add_column("to the plan", justify="right")
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
    table.add_column("to the plan", justify="right")
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
