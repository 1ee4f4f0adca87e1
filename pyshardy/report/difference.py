"""What differs between two results, as plain data and as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from rich.text import Text

from pyshardy.core.sharding import TensorSharding
from pyshardy.core.text import format_bytes
from pyshardy.report.folding import fold
from pyshardy.report.layout import Cell, Column, Table, paragraph
from pyshardy.report.places import SourcePlace, format_place
from pyshardy.report.specs import Notation, axis_to_json, format_axis, format_sharding
from pyshardy.report.summary import format_shape
from pyshardy.report.tables import DEFAULTS, Page, TableOptions, html, plain_text

DIFFERENCE_VERSION = 1
"""The version of what `to_json` gives; it grows when a key goes or changes its meaning."""
MOST_VALUES = 12
"""So many rows of what ops compute are shown unless all are to be shown."""
_NOT_THERE = "not there"
_CHANGE_COLUMNS = (
    Column("", rank=0),
    Column("name"),
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
)
_TOTAL_COLUMNS = (Column("on one device"), *(Column(one, is_number=True) for one in ("before", "after", "difference")))


@dataclass(frozen=True, slots=True)
class Change:
    """Tensors that are sharded otherwise, or that only one of both has.

    Attributes:
        kind: "input", "output" or "value": what an op computes.
        name: What they are called: `params['layers'][0..23]['w1']`, "`dot_general` in `mlp` at model.py:41".
        shape: The shape of one.
        dtype: Its element type; empty if it is not known.
        before: How it was sharded; None if it was not.
        after: How it is sharded.
        count_before: How many there were.
        count_after: How many there are.
        bytes_before: Bytes that one device held of all of them, of inputs and outputs.
        bytes_after: Bytes that it holds now.
    """

    kind: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    before: TensorSharding | None
    after: TensorSharding | None
    count_before: int = 1
    count_after: int = 1
    bytes_before: int | None = None
    bytes_after: int | None = None

    @property
    def is_resharded(self) -> bool:
        """Whether both have them, and shard them otherwise, be it over devices in another order."""
        is_other = self.before is not self.after or self.count_before == self.count_after
        return bool(self.count_before and self.count_after) and is_other

    @property
    def is_more_alike(self) -> bool:
        """Whether both have them, sharded alike, but one has more."""
        return bool(self.count_before and self.count_after) and not self.is_resharded

    def to_json(self) -> dict[str, Any]:
        """The change as JSON-ready data."""
        before = format_sharding(self.before, Notation.SDY) if self.count_before else None
        after = format_sharding(self.after, Notation.SDY) if self.count_after else None
        return {
            "kind": self.kind,
            "name": self.name,
            "shape": list(self.shape),
            "dtype": self.dtype or None,
            "before": before,
            "after": after,
            "count_before": self.count_before,
            "count_after": self.count_after,
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
        }


@dataclass(frozen=True, slots=True)
class CollectiveChange:
    """Collectives that are alike, of which there are more, fewer, or larger ones than before.

    Attributes:
        kind: Their name, such as "all_gather".
        axes: The mesh axes along which devices work together; None if their groups fit no axes.
        cause: What made them necessary, such as "reshard of operand 1 of stablehlo.dot_general".
        place: The line of the user's program that needs them.
        count_before: How often one of them ran.
        count_after: How often one runs now.
        bytes_before: Bytes that every device sent for all of them.
        bytes_after: Bytes that it sends now.
    """

    kind: str
    axes: tuple[str, ...] | None
    cause: str | None
    place: SourcePlace | None
    count_before: int
    count_after: int
    bytes_before: int
    bytes_after: int

    @property
    def what(self) -> str:
        """Whether they came, went, or changed."""
        return "came" if not self.count_before else "went" if not self.count_after else "changed"

    def to_json(self) -> dict[str, Any]:
        """The change as JSON-ready data."""
        return {
            "what": self.what,
            "kind": self.kind,
            "axes": None if self.axes is None else [axis_to_json(axis) for axis in self.axes],
            "cause": self.cause,
            "place": None if self.place is None else list(self.place),
            "count_before": self.count_before,
            "count_after": self.count_after,
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
        }


@dataclass(frozen=True, slots=True)
class Total:
    """Bytes of one device before and after.

    Attributes:
        name: What they are: "inputs", "outputs", "sent in collectives", "held at most".
        before: How many there were.
        after: How many there are.
    """

    name: str
    before: int
    after: int

    def to_json(self) -> dict[str, Any]:
        """The total as JSON-ready data."""
        return {"name": self.name, "before": self.before, "after": self.after}


@dataclass(frozen=True, slots=True)
class Talk:
    """What devices send otherwise.

    Attributes:
        collectives: The collectives that came, went or changed, those that differ most first.
        totals: What a device sends, and the most that it holds.
        unknown: Why it is not known, if it is not.
    """

    collectives: tuple[CollectiveChange, ...] = ()
    totals: tuple[Total, ...] = ()
    unknown: str | None = None


@dataclass(frozen=True)
class Difference:
    """What differs between two results.

    Attributes:
        changes: The tensors that are sharded otherwise: inputs, outputs, then what ops compute.
        sizes: The bytes that a device holds of inputs and outputs.
        compared: How many inputs and outputs, and how many values of ops, were compared.
        how: What was propagated for it, if that is of interest.
        find_talk: Finds out what the devices send otherwise, which takes partitioning both.
    """

    changes: tuple[Change, ...]
    sizes: tuple[Total, ...]
    compared: tuple[int, int]
    how: str = ""
    find_talk: Callable[[], Talk] = field(default=Talk, repr=False, compare=False)

    @cached_property
    def talk(self) -> Talk:
        """What the devices send otherwise; both programs are partitioned when it is first asked for."""
        return self.find_talk()

    @property
    def collectives(self) -> tuple[CollectiveChange, ...]:
        """The collectives that came, went or changed, those that differ most first."""
        return self.talk.collectives

    @property
    def totals(self) -> tuple[Total, ...]:
        """Bytes on one device: of inputs, of outputs, sent in collectives, held at most."""
        return (*self.sizes, *self.talk.totals)

    @property
    def shardings(self) -> tuple[Change, ...]:
        """The tensors that both have and shard otherwise."""
        return tuple(change for change in self.changes if change.is_resharded)

    @property
    def differs(self) -> bool:
        """Whether anything differs."""
        return bool(self.changes or self.collectives)

    def without_talk(self) -> Difference:
        """The same without what the devices send, for which nothing is partitioned then."""
        return replace(self, find_talk=lambda: Talk(unknown="it was not asked for"))

    def to_json(self) -> dict[str, Any]:
        """The difference as JSON-ready data; the keys are the names of the attributes."""
        return {
            "version": DIFFERENCE_VERSION,
            "changes": [change.to_json() for change in self.changes],
            "collectives": [change.to_json() for change in self.collectives],
            "totals": [total.to_json() for total in self.totals],
            "compared": {"inputs_and_outputs": self.compared[0], "values": self.compared[1]},
            "how": self.how or None,
            "unknown": self.talk.unknown,
        }

    def tables(self, options: TableOptions = DEFAULTS) -> Page:
        """The totals, the shardings and the collectives that differ, for a `rich` console."""
        return Page(lambda width: _lines(self, options, width))

    def __str__(self) -> str:
        return plain_text(self.tables())

    def __repr__(self) -> str:
        count = len(self.shardings)
        return f"<Difference: {count or 'no'} {'sharding differs' if count == 1 else 'shardings differ'}>"

    def _repr_html_(self) -> str:
        return html(self.tables())


def folded_changes(changes: Sequence[Change]) -> tuple[Change, ...]:
    """The changes with those of repeated layers as one.

    >>> changes = [Change("input", f"w[{layer}]", (8,), "f32", None, None, 1, 0, 32, None) for layer in range(3)]
    >>> [(found.name, found.count_before, found.bytes_before) for found in folded_changes(changes)]
    [('w[0..2]', 3, 96)]
    """
    keys = [
        (one.kind, one.shape, one.dtype, one.before, one.after, one.count_before, one.count_after) for one in changes
    ]
    found = []
    for folded in fold((one.name, key) for one, key in zip(changes, keys)):
        members = [changes[member] for member in folded.members]
        first = members[0]
        found.append(
            Change(
                *(first.kind, folded.name, first.shape, first.dtype, first.before, first.after),
                sum(one.count_before for one in members),
                sum(one.count_after for one in members),
                _sum([one.bytes_before for one in members]),
                _sum([one.bytes_after for one in members]),
            )
        )
    return tuple(found)


def _sum(sizes: Sequence[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if known else None


def _lines(difference: Difference, options: TableOptions, width: int) -> list[Text]:
    ports, values = difference.compared
    counts = f"compared {ports} inputs and outputs and {values} values of ops"
    lines = paragraph(counts + (f"; {difference.how}" if difference.how else ""), width, style="dim")
    lines += [*_totals(difference).lines(width), Text(), *_sharding_lines(difference.changes, options, width), Text()]
    if difference.talk.unknown is not None:
        return [*lines, *paragraph(f"what the devices send is not known: {difference.talk.unknown}", width)]
    if difference.collectives:
        return [*lines, *_collectives(difference.collectives, options.notation).lines(width)]
    return [*lines, *paragraph("the same collectives", width)]


def _sharding_lines(changes: Sequence[Change], options: TableOptions, width: int) -> list[Text]:
    """The tensors that are sharded otherwise; unless all is to be shown, the first ones of what ops compute."""
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


def _totals(difference: Difference) -> Table:
    rows = []
    for total in difference.totals:
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
        style = {"came": "red", "went": "green"}.get(change.what, "")
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
            )
        )
    return Table("collectives", _COLLECTIVE_COLUMNS, rows)
