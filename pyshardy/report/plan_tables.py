"""A plan of shardings as tables."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pyshardy.core.spec import format_spec
from pyshardy.core.text import format_bytes, format_shape
from pyshardy.report.cost import format_duration, without_unpriced
from pyshardy.report.plan import THE_PLAN, CompiledRow, PlanRow, PlanSummary
from pyshardy.report.printing import Page, rendered
from pyshardy.source.places import format_place

_MOST_ROWS = 12


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
    for sure in _certainty(found):
        text.append(f"\n{sure}", style="dim")
    return text


def _needed(row: PlanRow | CompiledRow) -> str:
    """What the program of a plan needs, compiled to the end, if that was done."""
    needed = row.needed_bytes if isinstance(row, CompiledRow) else None
    return f" ({format_bytes(needed)} compiled to the end)" if needed else ""


def _certainty(found: PlanSummary) -> list[str]:
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
    has_devices = any(row.devices for row in found.ways)
    if has_devices:
        table.add_column("chips", justify="right")
        table.add_column("chip-seconds", justify="right")
    for row in found.ways[:_MOST_ROWS]:
        chips = [str(row.devices), f"{row.seconds * row.devices:.3g}"] if has_devices else []
        table.add_row(*_cells(row, found), *chips, style="bold" if row.name == found.way else "")
    if len(found.ways) > _MOST_ROWS:
        table.add_row(f"{len(found.ways) - _MOST_ROWS} more")
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
