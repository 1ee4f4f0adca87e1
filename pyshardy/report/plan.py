"""A plan of shardings as plain data and as tables."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pyshardy.core.spec import format_spec
from pyshardy.core.text import format_bytes, format_shape
from pyshardy.report.constraints import PlanConstraint
from pyshardy.report.cost import format_duration, without_unpriced
from pyshardy.report.nearest import NearestExpert
from pyshardy.report.printing import Page, rendered
from pyshardy.report.reasons import PlanReason
from pyshardy.report.rules import NamedSpec, PlanRule, rules_of
from pyshardy.source.places import format_place

_MOST_ROWS = 12
FAR = 2
"""From this factor of the estimated bytes on, the compiler's program is said to differ."""
THE_PLAN = "the plan"


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
        sent_bytes: The bytes that every device sends; 0 if the program was not partitioned.
        communication_seconds: Estimated time of all collectives, hidden or not.
    """

    name: str
    seconds: float
    bytes: float
    fits: bool
    is_exact: bool
    unpriced: tuple[tuple[str, int], ...] = ()
    sent_bytes: int = 0
    communication_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CompiledRow:
    """The estimated cost of the program that a compiler makes of one way to shard it.

    Attributes:
        name: The way in words.
        seconds: Estimated time of a step of the compiler's program; 0 if it refused.
        bytes: Estimated peak memory of a device; 0 if it refused.
        fits: Whether the peak is within the limit.
        sent_bytes: The bytes that every device sends in the compiler's program.
        estimated_seconds: Estimated time of a step as pyshardy partitions the program.
        estimated_sent_bytes: The bytes that every device sends then.
        replicated_bytes: The bytes of the tensors that the compiler gathers whole on every device.
        refusal: What the compiler said if it refused to partition the program; else empty.
        communication_seconds: Estimated time of all collectives of the compiler's program, hidden or not.
        needed_bytes: The peak memory that the program needs, compiled to the end; `fits` goes by it then. None if that
            was not done, and 0 if the compiler only says that the program does not fit.
    """

    name: str
    seconds: float
    bytes: float
    fits: bool
    sent_bytes: int
    estimated_seconds: float
    estimated_sent_bytes: int
    replicated_bytes: int = 0
    refusal: str = ""
    communication_seconds: float = 0.0
    needed_bytes: int | None = None

    @property
    def is_far(self) -> bool:
        """Whether the compiler's program sends more than twice what was estimated."""
        return self.sent_bytes > FAR * self.estimated_sent_bytes

    @property
    def words(self) -> str:
        """How the compiler's program differs from the estimated one; empty if it is close.

        >>> CompiledRow("the plan", 1.0, 1.0, True, 3000, 1.0, 1000, 64).words
        'sends 3.0 times what was estimated; 64 B of tensors are gathered whole on every device'
        """
        if self.refusal:
            return f"the compiler refuses it: {self.refusal}"
        said = []
        if self.is_far:
            times = self.sent_bytes / self.estimated_sent_bytes if self.estimated_sent_bytes else 0.0
            said.append(f"sends {times:.1f} times what was estimated" if times else "was estimated to send nothing")
        if self.replicated_bytes:
            said.append(f"{format_bytes(self.replicated_bytes)} of tensors are gathered whole on every device")
        if self.needed_bytes is not None:
            needed = f"needs {format_bytes(self.needed_bytes)}" if self.needed_bytes else "needs more than there is"
            said.append(f"{needed} compiled to the end, which {'fits' if self.fits else 'does NOT fit'}")
        return "; ".join(said)


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
        reasons: For every rule, what the best other sharding costs, and which collectives the rule makes.
        candidates: The number of candidates that the search priced.
        exact: The number of candidates that got an exact estimate.
        seconds: How long the search took.
        seed: The seed of random choices.
        ended_by: "nothing better", "time", "candidates" or "interruption".
        notes: What else there is to know.
        constraints: The shardings of intermediate values.
        bound: The seconds that no plan for the program on this mesh can be faster than, by the cost model; 0 if none.
        all_tried: The number of all shardings of inputs, if all were tried and none is better; else 0.
        compiler: The compiler that the best plans were confirmed with; empty if none was asked.
        compiled: The cost of the programs that it makes of the best plans and of the given program, the best first.
        nearest: The plan of experts that is nearest to this one, and what is changed; empty if none was priced.
        goal: What the plan was chosen by: "time" or "memory".
        way: The version of the program that the plan is for, such as "mesh data=8" or "4 micro-batches"; empty if there
            was one.
        ways: The cost of every version, the best first; of those that were not searched, that of their best tactic.
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
    compiler: str = ""
    compiled: tuple[CompiledRow, ...] = ()
    nearest: tuple[NearestExpert, ...] = ()
    goal: str = "time"
    way: str = ""
    ways: tuple[PlanRow, ...] = ()

    @property
    def rules(self) -> tuple[PlanRule, ...]:
        """The shardings of inputs as rules: patterns of names, the first of which decides."""
        return rules_of(NamedSpec(one.name, one.axes, one.count, one.shape) for one in self.specs if not one.is_output)

    @property
    def final(self) -> PlanRow | CompiledRow:
        """The cost of the plan: that of the compiler's program, if one was asked and did not refuse it."""
        found = (row for row in self.compiled if row.name == THE_PLAN and not row.refusal)
        return next(found, self.chosen)


def plan_tables(found: PlanSummary) -> Page:
    """The shardings of a plan, its cost, the cost of alternatives, and the reasons, for a `rich` console."""
    parts: list[RenderableType] = [_heading(found), ""]
    if found.specs:
        parts += [_rules(found), ""]
    if found.constraints:
        parts += [_constraints(found), ""]
    if found.compiled:
        parts += [_compiled(found), *_words(found), ""]
    if len(found.ways) > 1:
        parts += [_ways(found), ""]
    parts.append(_costs(found))
    for one in found.nearest:
        parts += ["", *map(Text, one.lines(found.chosen.seconds, found.chosen.bytes))]
    if found.reasons:
        parts += [
            "",
            Text("why: the best other sharding of each rule, and collectives beside whole arrays", style="bold"),
        ]
        parts += [Text("  " + sentence) for reason in found.reasons for sentence in reason.sentences]
    if len(found.front) > 1:
        parts += ["", _front(found)]
    parts += [Text(f"note: {note}", style="dim") for note in found.notes]
    return rendered(Group(*parts))


def _heading(found: PlanSummary) -> Text:
    devices = 1
    for _, size in found.mesh:
        devices *= size
    text = Text(f"plan for {devices} x {found.hardware}, mesh ", style="bold")
    text.append(", ".join(f"{name}={size}" for name, size in found.mesh))
    chosen, final = found.chosen, found.final
    verdict = "fits in" if final.fits else "does NOT fit in"
    by = "" if final is chosen else f" of the program that {found.compiler} makes of it"
    text.append(
        f"\nestimated step {format_duration(final.seconds)}{by}{without_unpriced(chosen.unpriced)}, "
        f"peak {format_bytes(round(final.bytes))}{_needed(final)}, which "
        f"{verdict} {format_bytes(round(found.limit))}; all figures are estimates, none is measured",
        style="" if final.fits else "red",
    )
    if not found.compiled:
        text.append("\nnot confirmed: --compiler NAME asks the compiler that you will run", style="dim")
    text.append(
        f"\n{found.candidates} candidates, {found.exact} of them estimated exactly, in {found.seconds:.1f} s; "
        f"ended by {found.ended_by}; seed {found.seed}; goal: {found.goal}",
        style="dim",
    )
    for sure in certainty(found):
        text.append(f"\n{sure}", style="dim")
    return text


def _needed(row: PlanRow | CompiledRow) -> str:
    """What the program of a plan needs, compiled to the end, if that was done."""
    needed = row.needed_bytes if isinstance(row, CompiledRow) else None
    return f" ({format_bytes(needed)} compiled to the end)" if needed else ""


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


def _of_figures(title: str, has_names: bool = True) -> Table:
    """A table for rows of `_figures`, with their names or without."""
    table = _titled(title)
    if has_names:
        table.add_column("", overflow="fold")
    for name in ("step", "vs. plan", "peak"):
        table.add_column(name, justify="right")
    table.add_column("fits")
    return table


def _rules(found: PlanSummary) -> Table:
    table = _titled("rules: the first that fits the name of an input decides, * stands for any text")
    table.add_column("inputs", overflow="fold")
    table.add_column("count", justify="right")
    table.add_column("for example", overflow="fold")
    table.add_column("spec", overflow="fold")
    rules = found.rules
    for rule in rules:
        examples = (one for one in found.specs if not one.is_output and rule.fits(one.name))
        first = None if rule is rules[-1] else next(examples, None)
        shape = "" if first is None else format_shape(first.shape, first.element)
        if rule.count:
            table.add_row(rule.pattern, str(rule.count), shape, format_spec(rule.axes))
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


def _compiled(found: PlanSummary) -> Table:
    table = _of_figures(f"estimated cost of the programs that {found.compiler} makes")
    table.add_column("sends", justify="right")
    table.add_column("estimated", justify="right")
    for row in found.compiled:
        sent, said = format_bytes(row.sent_bytes), format_bytes(row.estimated_sent_bytes)
        figures = (*_figures(row, found.final), sent) if not row.refusal else ("refused", "", "", "", "")
        table.add_row(row.name, *figures, said, style="bold" if row.name == THE_PLAN else "")
    return table


def _words(found: PlanSummary) -> list[Text]:
    return [Text(f"  {row.name}: {row.words}") for row in found.compiled if row.words]


def _costs(found: PlanSummary) -> Table:
    table = _of_figures("estimated cost, compared with experts' tactics (~ marks a quicker estimate)")
    table.add_row(*_cells(found.chosen, found), style="bold")
    shown = found.rows if len(found.rows) <= _MOST_ROWS else _told_apart(found)[:_MOST_ROWS]
    for row in shown:
        table.add_row(*_cells(row, found))
    if len(found.rows) > len(shown):
        table.add_row(f"{len(found.rows) - len(shown)} more, no faster", "", "", "", "")
    return table


def _told_apart(found: PlanSummary) -> list[PlanRow]:
    """The first row of those with the same figures."""
    first: dict[tuple[str, ...], PlanRow] = {}
    for row in found.rows:
        first.setdefault(tuple(_cells(row, found)[1:]), row)
    return list(first.values())


def _ways(found: PlanSummary) -> Table:
    table = _of_figures(f"the plan is for: {found.way} (~ marks the best tactic of a version that was not searched)")
    for row in found.ways[:_MOST_ROWS]:
        table.add_row(*_cells(row, found), style="bold" if row.name == found.way else "")
    if len(found.ways) > _MOST_ROWS:
        table.add_row(f"{len(found.ways) - _MOST_ROWS} more", "", "", "", "")
    return table


def _front(found: PlanSummary) -> Table:
    table = _of_figures("time against memory", has_names=False)
    for row in found.front[:_MOST_ROWS]:
        table.add_row(*_cells(row, found)[1:])
    return table


def _cells(row: PlanRow, found: PlanSummary) -> list[str]:
    return [row.name, *_figures(row, found.chosen, "" if row.is_exact else "~")]


def _figures(row: PlanRow | CompiledRow, plan: PlanRow | CompiledRow, about: str = "") -> list[str]:
    ratio = f"{row.seconds / plan.seconds:.2f}" if plan.seconds else ""
    bytes_ = format_bytes(round(row.bytes))
    return [about + format_duration(row.seconds), ratio, about + bytes_, "yes" if row.fits else "no"]
