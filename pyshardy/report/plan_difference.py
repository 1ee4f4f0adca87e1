"""The difference between two plans, as plain data and as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from rich.text import Text

from pyshardy.core.axes import Dims
from pyshardy.core.spec import format_spec
from pyshardy.core.text import format_bytes, format_shape
from pyshardy.report.cost import format_duration
from pyshardy.report.layout import Cell, Column, Table, paragraph
from pyshardy.report.plan import PlanSpec, PlanSummary
from pyshardy.report.printing import DEFAULTS, Page, Printable, TableOptions

PLAN_DIFFERENCE_VERSION: Final = 1
"""The version of `to_json`'s data. It grows when a key is removed or changes its meaning."""
_FIGURES = ("step", "peak memory", "sent by a device")
_COLUMNS = (
    Column("input", is_name=True),
    Column("count", rank=2, is_number=True),
    Column("tensor", rank=3),
    Column("before"),
    Column("after"),
)
_CONSTRAINT_COLUMNS = (Column("line"), Column("value", is_name=True), Column("before"), Column("after"))
_FIGURE_COLUMNS = (Column(""), *(Column(one, is_number=True) for one in ("before", "after", "ratio")))


@dataclass(frozen=True, slots=True)
class InputSpecChange:
    """Inputs that two plans shard otherwise.

    Attributes:
        names: Their names; `[*]` stands for every layer.
        count: Their number.
        shape: The shape of the first of them.
        element: Its element type in MLIR's notation.
        before: The mesh axes of each dimension in the first plan; None if it has no such input.
        after: The same in the second plan.
    """

    names: tuple[str, ...]
    count: int
    shape: tuple[int, ...]
    element: str
    before: Dims | None
    after: Dims | None


@dataclass(frozen=True, slots=True)
class ConstraintChange:
    """A value that two plans constrain otherwise.

    Attributes:
        place: The source line, as "model.py:12".
        value: The value in words: "`x` of `block`".
        before: The mesh axes of each dimension in the first plan; None if it does not constrain the value.
        after: The same in the second plan.
    """

    place: str
    value: str
    before: Dims | None
    after: Dims | None


@dataclass(frozen=True, slots=True)
class FigureChange:
    """A figure of two plans.

    Attributes:
        name: "step", "peak memory" or "sent by a device".
        before: Of the first plan: seconds, or bytes.
        after: Of the second plan.
    """

    name: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class PlanDifference(Printable):
    """The difference between two plans: inputs and constraints that are sharded otherwise, and what that costs.

    Attributes:
        inputs: The inputs that are sharded otherwise.
        constraints: The values that are constrained otherwise.
        figures: Estimated time, peak memory, and bytes sent by a device.
        conditions: What the plans were made for, before and after, where that differs: mesh, hardware, limit.
    """

    inputs: tuple[InputSpecChange, ...]
    constraints: tuple[ConstraintChange, ...]
    figures: tuple[FigureChange, ...]
    conditions: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether anything is sharded otherwise, or on another mesh."""
        return bool(self.inputs or self.constraints or self.conditions)

    def to_json(self) -> dict[str, Any]:
        """The difference as JSON-ready data; the keys are the names of the attributes."""
        return {"version": PLAN_DIFFERENCE_VERSION, **asdict(self)}

    def tables(self, options: TableOptions = DEFAULTS) -> Page:
        """The figures, and the inputs and constraints that differ, for a `rich` console."""
        return Page(lambda width: _lines(self, width))

    def __repr__(self) -> str:
        count = len(self.inputs) + len(self.constraints)
        return f"<PlanDifference: {count or 'no'} {'sharding differs' if count == 1 else 'shardings differ'}>"


def plan_difference(before: PlanSummary, after: PlanSummary) -> PlanDifference:
    """The difference between two plans.

    Inputs are aligned by name, constraints by source line and value. Figures are those of the compiler's programs where
    both plans were confirmed, else estimates.

    Args:
        before: The first plan.
        after: The second plan.
    """
    is_confirmed = bool(before.compiled and after.compiled)
    rows = [found.final if is_confirmed else found.chosen for found in (before, after)]
    (one, other) = ((row.seconds, row.bytes, float(row.sent_bytes)) for row in rows)
    figures = tuple(map(FigureChange, _FIGURES, one, other))
    conditions = tuple(
        f"{what}: {first} before, {second} after"
        for what, first, second in zip(("mesh", "hardware", "limit"), _conditions(before), _conditions(after))
        if first != second
    )
    return PlanDifference(tuple(_inputs(before, after)), tuple(_constraints(before, after)), figures, conditions)


def _conditions(found: PlanSummary) -> tuple[str, str, str]:
    mesh = ", ".join(f"{name}={size}" for name, size in found.mesh)
    return mesh, found.hardware, format_bytes(round(found.limit))


def _inputs(before: PlanSummary, after: PlanSummary) -> Iterable[InputSpecChange]:
    """The inputs whose shardings differ, the largest first; inputs that change alike are one row."""
    sides = [{one.name: one for one in found.specs if not one.is_output} for found in (before, after)]
    alike: dict[tuple[Dims | None, Dims | None], list[PlanSpec]] = {}
    for name in dict.fromkeys([*sides[0], *sides[1]]):
        one, other = (side.get(name) for side in sides)
        change = (None if one is None else one.axes, None if other is None else other.axes)
        spec = one or other
        if change[0] != change[1] and spec is not None:
            alike.setdefault(change, []).append(spec)
    for (first, second), specs in alike.items():
        count = sum(spec.count for spec in specs)
        names = tuple(spec.name for spec in specs)
        yield InputSpecChange(names, count, specs[0].shape, specs[0].element, first, second)


def _constraints(before: PlanSummary, after: PlanSummary) -> Iterable[ConstraintChange]:
    sides = [{one.key: one for one in found.constraints} for found in (before, after)]
    known: Mapping[str, Any] = {**sides[0], **sides[1]}
    for key, one in known.items():
        first, second = (None if (own := side.get(key)) is None else own.axes for side in sides)
        if first != second:
            yield ConstraintChange(one.place, one.value, first, second)


def _lines(found: PlanDifference, width: int) -> list[Text]:
    lines = [line for text in found.conditions for line in paragraph(text, width)]
    lines += _figures(found.figures).lines(width)
    if found.inputs:
        lines += [Text(), *_changed_inputs(found.inputs).lines(width)]
    if found.constraints:
        lines += [Text(), *_changed_constraints(found.constraints).lines(width)]
    if not found.inputs and not found.constraints:
        lines += [Text(), *paragraph("the same shardings and constraints", width)]
    return lines


def _figures(figures: Iterable[FigureChange]) -> Table:
    rows = []
    for one in figures:
        text = format_duration if one.name == "step" else lambda size: format_bytes(round(size))
        ratio = "same" if one.before == one.after else f"{one.after / one.before:.2f}" if one.before else ""
        style = "dim" if one.before == one.after else "red" if one.after > one.before else "green"
        rows.append((Cell(one.name), Cell(text(one.before)), Cell(text(one.after)), Cell(ratio, style=style)))
    return Table("estimated cost", _FIGURE_COLUMNS, rows)


def _changed_inputs(changes: Iterable[InputSpecChange]) -> Table:
    rows = []
    for one in changes:
        more = len(one.names) - 1
        name = one.names[0] + (f" and {more} like it" if more else "")
        shape = format_shape(one.shape, one.element)
        rows.append((Cell(name), Cell(f"×{one.count}"), Cell(shape), _spec(one.before), _spec(one.after)))
    return Table("inputs that are sharded otherwise", _COLUMNS, rows)


def _changed_constraints(changes: Iterable[ConstraintChange]) -> Table:
    rows = [(Cell(one.place), Cell(one.value), _spec(one.before), _spec(one.after)) for one in changes]
    return Table("constraints that differ", _CONSTRAINT_COLUMNS, rows)


def _spec(axes: Dims | None) -> Cell:
    return Cell("none", style="dim") if axes is None else Cell(format_spec(axes))
