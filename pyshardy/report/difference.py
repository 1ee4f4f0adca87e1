"""The difference between two results, as plain data and as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from rich.text import Text

from pyshardy.core.text import format_bytes, format_shape
from pyshardy.report.changes import Change, CollectiveChange, Communication, Total
from pyshardy.report.collective_table import scope_cell
from pyshardy.report.layout import Cell, Column, Table, paragraph
from pyshardy.report.printing import DEFAULTS, Page, Printable, TableOptions
from pyshardy.report.specs import Notation, format_axis, format_sharding
from pyshardy.source.places import format_place

DIFFERENCE_VERSION = 2
"""The version of `to_json`'s data. It grows when a key is removed or changes its meaning."""
MOST_VALUES = 12
"""The number of rows of results of ops to show by default."""
_NOT_THERE = "not there"
_CHANGE_COLUMNS = (
    Column("", rank=0),
    Column("name", is_name=True),
    Column("count", rank=2),
    Column("tensor", rank=4),
    Column("before"),
    Column("after"),
    Column("bytes before", rank=3, is_number=True),
    Column("bytes after", rank=3, is_number=True),
)
_COLLECTIVE_COLUMNS = (
    Column(""),
    Column("kind"),
    Column("along", rank=1),
    Column("count", rank=1),
    Column("bytes before", is_number=True),
    Column("bytes after", is_number=True),
    Column("because of", rank=3, wraps=True),
    Column("source", rank=2),
    Column("in", rank=4),
)
_TOTAL_COLUMNS = (Column("on one device"), *(Column(one, is_number=True) for one in ("before", "after", "difference")))


@dataclass(frozen=True)
class Difference(Printable):
    """The difference between two results.

    Attributes:
        changes: The tensors with different shardings: inputs, outputs, then results of ops.
        sizes: The bytes per device of inputs and outputs.
        compared: The number of compared inputs and outputs, and of results of ops.
        how: How the results were propagated, if that is relevant.
        find_communication: Computes the difference in communication, which partitions both programs.
    """

    changes: tuple[Change, ...]
    sizes: tuple[Total, ...]
    compared: tuple[int, int]
    how: str = ""
    find_communication: Callable[[], Communication] = field(default=Communication, repr=False, compare=False)

    @cached_property
    def communication(self) -> Communication:
        """The difference in communication. The first use partitions both programs."""
        return self.find_communication()

    @property
    def collectives(self) -> tuple[CollectiveChange, ...]:
        """The added, removed and changed collectives, those that differ most first."""
        return self.communication.collectives

    @property
    def totals(self) -> tuple[Total, ...]:
        """The bytes per device: of inputs, of outputs, sent in collectives, peak memory."""
        return (*self.sizes, *self.communication.totals)

    @property
    def shardings(self) -> tuple[Change, ...]:
        """The tensors that both have, with different shardings."""
        return tuple(change for change in self.changes if change.is_resharded)

    @property
    def differs(self) -> bool:
        """Whether anything differs."""
        return bool(self.changes or self.collectives)

    def without_communication(self) -> Difference:
        """The difference without communication, so that nothing is partitioned."""
        return replace(self, find_communication=lambda: Communication(unknown="it was not asked for"))

    def to_json(self) -> dict[str, Any]:
        """The difference as JSON-ready data; the keys are the names of the attributes."""
        return {
            "version": DIFFERENCE_VERSION,
            "changes": [change.to_json() for change in self.changes],
            "collectives": [change.to_json() for change in self.collectives],
            "totals": [total.to_json() for total in self.totals],
            "compared": {"inputs_and_outputs": self.compared[0], "values": self.compared[1]},
            "how": self.how or None,
            "unknown": self.communication.unknown,
        }

    def tables(self, options: TableOptions = DEFAULTS) -> Page:
        """The totals, the shardings and the collectives that differ, for a `rich` console."""
        return Page(lambda width: difference_lines(self, options, width))

    def __repr__(self) -> str:
        count = len(self.shardings)
        return f"<Difference: {count or 'no'} {'sharding differs' if count == 1 else 'shardings differ'}>"


def difference_lines(difference: Difference, options: TableOptions, width: int) -> list[Text]:
    """The totals, the shardings and the collectives that differ, for a width."""
    ports, values = difference.compared
    counts = f"compared {ports} inputs and outputs and {values} values of ops"
    lines = paragraph(counts + (f"; {difference.how}" if difference.how else ""), width, style="dim")
    lines += [
        *totals_table(difference.totals).lines(width),
        Text(),
        *_sharding_lines(difference.changes, options, width),
        Text(),
    ]
    if difference.communication.unknown is not None:
        return [*lines, *paragraph(f"what the devices send is not known: {difference.communication.unknown}", width)]
    if difference.collectives:
        return [*lines, *_collectives(difference.collectives, options.notation).lines(width)]
    return [*lines, *paragraph("the same collectives", width)]


def _sharding_lines(changes: Sequence[Change], options: TableOptions, width: int) -> list[Text]:
    """The tensors with different shardings; by default only the first results of ops."""
    if not changes:
        return paragraph("every tensor is sharded alike", width)
    if options.unfold:
        return _changes(changes, options.notation).lines(width)
    alike = [change for change in changes if change.is_more_alike]
    shown = [change for change in changes if not change.is_more_alike]
    ports = sum(change.kind != "value" for change in shown)
    most = ports + MOST_VALUES if len(shown) > ports + MOST_VALUES + 1 else len(shown)
    lines = _changes(shown[:most], options.notation).lines(width) if shown else []
    if len(shown) > most:
        left = len(shown) - most
        lines += paragraph(f"and {left} more rows of what ops compute: --all shows them", width, style="dim")
    if alike:
        first, rows = alike[0], f"{len(alike)} row{'s' * (len(alike) != 1)}"
        counts = f"{first.name} {_counts(first.count_before, first.count_after)}"
        said = f"{rows} of tensors of which there are more or fewer, sharded alike, as {counts}: --all shows them"
        lines += paragraph(said, width, style="dim")
    return lines


def totals_table(totals: Iterable[Total]) -> Table:
    """The bytes on one device before and after."""
    rows = []
    for total in totals:
        more = total.after - total.before
        sign = "+" if more > 0 else "-" if more < 0 else ""
        style = "red" if more > 0 else "green"
        change = Cell(f"{sign}{format_bytes(abs(more))}" if more else "same", style=style if more else "dim")
        rows.append((Cell(total.name), Cell(format_bytes(total.before)), Cell(format_bytes(total.after)), change))
    return Table("", _TOTAL_COLUMNS, rows)


def _changes(changes: Sequence[Change], notation: Notation) -> Table:
    rows = []
    for change in changes:
        before = format_sharding(change.before, notation) if change.count_before else _NOT_THERE
        after = format_sharding(change.after, notation) if change.count_after else _NOT_THERE
        rows.append(
            (
                Cell(change.kind),
                Cell(change.name.replace("`", "")),
                Cell(_counts(change.count_before, change.count_after)),
                Cell(format_shape(change.shape, change.dtype)),
                Cell(before, style="" if change.count_before else "dim"),
                Cell(after, style="" if change.count_after else "dim"),
                Cell("" if change.bytes_before is None else format_bytes(change.bytes_before)),
                Cell("" if change.bytes_after is None else format_bytes(change.bytes_after)),
            )
        )
    return Table("shardings", _CHANGE_COLUMNS, rows)


def _counts(before: int, after: int) -> str:
    if before == after:
        return f"×{before}" if before > 1 else ""
    return f"×{before} → ×{after}" if before and after else f"×{before or after}" if before + after > 1 else ""


def _collectives(changes: Sequence[CollectiveChange], notation: Notation) -> Table:
    rows = []
    for change in changes:
        cause = change.cause or "the op itself"
        style = {"added": "red", "removed": "green"}.get(change.what, "")
        axes = None if change.axes is None else ", ".join(format_axis(axis, notation) for axis in change.axes)
        rows.append(
            (
                Cell(change.what, style=style),
                Cell(change.kind),
                Cell("groups" if axes is None else axes),
                Cell(_counts(change.count_before, change.count_after)),
                Cell(format_bytes(change.bytes_before) if change.count_before else ""),
                Cell(format_bytes(change.bytes_after) if change.count_after else ""),
                Cell(cause, short=cause.replace("of result of ", "of ").replace("stablehlo.", "")),
                Cell(format_place(change.place), short=format_place(change.place, only_name=True)),
                scope_cell(change.ops),
            )
        )
    return Table("collectives", _COLLECTIVE_COLUMNS, rows)
