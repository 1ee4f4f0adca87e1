"""Collectives as tables, with equal ones folded, and the totals per kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pyshardy.core.folding import fold_names
from pyshardy.core.scopes import scope_path
from pyshardy.core.text import format_bytes, format_shape
from pyshardy.costing.traffic import CollectiveGroup, CollectiveRow, KindTotal, Traffic
from pyshardy.report.layout import Cell, Column, Table
from pyshardy.report.printing import TableOptions
from pyshardy.report.specs import Notation, format_axis
from pyshardy.source.places import format_place

_ColumnOfGroups = tuple[Column, Callable[[CollectiveGroup], Cell]]
_SHORT_SCOPES = 2
"""The innermost scopes that a narrow table shows."""
_KIND_COLUMNS = Column("kind"), Column("count", is_number=True), Column("bytes sent", is_number=True)


def collectives_table(title: str, groups: Sequence[CollectiveGroup], traffic: Traffic, options: TableOptions) -> Table:
    """The table with one row per group of collectives."""
    is_one_mesh = len({row.mesh for row in traffic.collectives if row.mesh is not None}) < 2
    columns, cells = zip(*_collective_columns(is_one_mesh, options))
    return Table(title, columns, [tuple(cell(group) for cell in cells) for group in groups])


def _collective_columns(is_one_mesh: bool, options: TableOptions) -> tuple[_ColumnOfGroups, ...]:
    """Each column with the function that gives its cell for a group."""
    return (
        (Column("kind"), lambda group: Cell(group.first.kind)),
        (Column("", total=_times), _times_sent),
        (
            Column("bytes sent", is_number=True, total=lambda size: format_bytes(round(size))),
            lambda group: Cell(format_bytes(group.total_bytes), amount=group.total_bytes),
        ),
        (Column("along", rank=1), lambda group: Cell(along(group.first, is_one_mesh, options.notation))),
        (Column("because of", rank=3, wraps=True), lambda group: cause_cell(group.first.cause)),
        (Column("source", rank=1), lambda group: _source(group.first)),
        (Column("in", rank=4), lambda group: scope_cell(row.op for row in group.rows)),
        (Column("on one device", rank=5), lambda group: _before_and_after(group.first)),
        (Column("op", rank=6), lambda group: Cell(_ops(group))),
    )


def cause_cell(cause: str | None) -> Cell:
    """What made a collective necessary, in full and short."""
    cause = cause or "the op itself"
    short = cause.replace("of result of ", "of ").replace("stablehlo.", "").replace(" in the gradient", " (gradient)")
    return Cell(cause, short=short)


def scope_cell(ops: Iterable[str | None]) -> Cell:
    """The user's scopes around ops, such as flax's modules, in full and short.

    Args:
        ops: The names that JAX gave the ops.

    >>> scope_cell(f"jit(step)/jvp(decoder)/layers_{layer}/mlp/dot_general" for layer in range(4)).text
    'decoder/layers_0..3/mlp'
    """
    paths = [path for path in map(scope_path, dict.fromkeys(ops)) if path is not None]
    return Cell(_one_of(paths), short=_one_of("/".join(path.split("/")[-_SHORT_SCOPES:]) for path in paths))


def _source(row: CollectiveRow) -> Cell:
    place, inner = format_place(row.place), format_place(row.source)
    return Cell(place if inner == place else f"{place} ({inner})", short=format_place(row.place, only_name=True))


def _before_and_after(row: CollectiveRow) -> Cell:
    return Cell(f"{format_shape(row.shape_before, row.dtype)} → {format_shape(row.shape_after, row.dtype)}")


def _times_sent(group: CollectiveGroup) -> Cell:
    row = group.first
    rounds = "per round" if row.is_lower_bound else ""
    taken = "" if row.is_counted else "if taken"
    text = " ".join(filter(None, (_times(group.count), rounds, taken)))
    return Cell(text, amount=None if rounds or taken else group.count)


def _times(count: float) -> str:
    return f"×{count:.0f}" if count > 1 else ""


def along(row: CollectiveRow, is_one_mesh: bool, notation: Notation = Notation.SPEC) -> str:
    """The axes along which devices communicate, with their mesh if there are several; or the size of groups."""
    if row.axes is None:
        return f"groups of {row.group_size}"
    axes = ", ".join(format_axis(axis, notation) for axis in row.axes)
    return axes if is_one_mesh or row.mesh is None else f"{row.mesh}: {axes}"


def _ops(group: CollectiveGroup) -> str:
    """The name of the ops of a group: a folded name, or that of the first."""
    return _one_of(row.op for row in group.rows if row.op is not None)


def _one_of(names: Iterable[str]) -> str:
    folded = fold_names([(name, None) for name in dict.fromkeys(names)])
    if not folded:
        return ""
    return folded[0].name + (f" and {len(folded) - 1} more" if len(folded) > 1 else "")


def kinds_table(traffic: Traffic) -> Table:
    """The count of collectives of each kind, and the bytes that a device sends in them."""
    kinds = traffic.kinds
    count = sum(total.count for total in kinds)
    rows = []
    whole = (KindTotal("all", count, traffic.sent_bytes_per_device, traffic.is_lower_bound),) if len(kinds) > 1 else ()
    for total in (*kinds, *whole):
        sign = "≥ " if total.is_lower_bound else ""
        texts = total.kind, f"{sign}{total.count}", sign + format_bytes(total.sent_bytes_per_device)
        rows.append(tuple(map(Cell, texts)))
    return Table("totals", _KIND_COLUMNS, rows)
