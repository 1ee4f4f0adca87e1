"""Lays out tables and paragraphs in a width without cutting words.

If a table is too wide, cells get shorter where they can, texts wrap at spaces, extra columns are omitted, long names
lose their middle, and then the least important columns are omitted. A first cell that is still too long gets its own
line. Rows that then look the same, but for amounts, are added up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from rich.cells import cell_len
from rich.text import Text

_GAP = "  "
_MOST_TRIES = 3
"""How often a table is fitted again because sums made it too wide."""
_LEAST_WRAPPED = 16
"""The smallest width of a wrapped column."""
_MOST_LINES = 3
"""The number of lines that a cell is wrapped into before columns are omitted."""
_LONG_NAME = 40
"""Names that are no longer than this keep their middle."""
_LEAST_NAME = 24
"""The smallest width of a column of names that lost their middle."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        heading: Its heading.
        rank: The column of the highest rank is omitted first; those of rank 0 are kept.
        is_number: Whether its cells are aligned to the right.
        wraps: Whether its cells may wrap at spaces.
        is_extra: Whether to omit it, and columns of higher rank, before cells get shorter.
        is_name: Whether its cells may lose their middle before other columns are omitted.
        total: How to write the sum of amounts; only for a column of amounts.
    """

    heading: str
    rank: int = 0
    is_number: bool = False
    wraps: bool = False
    is_extra: bool = False
    is_name: bool = False
    total: Callable[[float], str] | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: Its text.
        short: A shorter text.
        style: Its style in `rich`.
        shortest: A text for still less room.
        amount: The amount that it shows, under a column of amounts.
    """

    text: str
    short: str | None = None
    style: str = ""
    shortest: str | None = None
    amount: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", _in_one_line(self.text))

    def shown(self, level: int) -> str:
        """The text, shorter the higher the level, which is 0, 1 or 2."""
        if level == 2 and self.shortest is not None:
            return self.shortest
        return self.short if level and self.short is not None else self.text


@dataclass(frozen=True, slots=True)
class Table:
    """A table without a width.

    Attributes:
        title: Its title; may be empty.
        columns: The columns. Columns that are empty in all rows are omitted, except columns of rank 0 with a heading.
        rows: The cells of every row.
    """

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Cell, ...]]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row of {len(row)} cells under {len(self.columns)} headings")

    def lines(self, width: int) -> list[Text]:
        """The table in lines of at most this width, unless a single word is longer; none if it has no rows.

        >>> table = Table("", (Column("name"), Column("why", 1, wraps=True)), [(Cell("x"), Cell("as it is so"))])
        >>> print(*table.lines(80), sep="\\n")
        name  why
        ────  ───────────
        x     as it is so
        """
        if not self.rows:
            return []
        table = without_empty(self)
        fit = _added_up(table, width)
        if not self.title:
            return list(fit.lines())
        title = Text(self.title, style="bold")
        left_out = [column.heading for column in table.columns if column not in fit.columns and column.heading]
        note = f" (no room for: {', '.join(left_out)})"
        if left_out and len(title) + cell_len(note) <= width:
            title.append(note, style="not bold dim")
        return [title, *fit.lines()]


def paragraph(text: str, width: int, style: str = "", indent: str = "  ") -> list[Text]:
    """A text in lines of at most this width; every line but the first is indented.

    >>> [str(line) for line in paragraph("much is said here", 12)]
    ['much is said', '  here']
    """
    first, *rest = _wrapped(_in_one_line(text), width)
    if not rest:
        return [Text(first, style=style)]
    more = _wrapped(" ".join(rest), max(1, width - len(indent)))
    return [Text(first, style=style), *(Text(indent + line, style=style) for line in more)]


def without_empty(table: Table) -> Table:
    """A table without the columns that it does not show because no row has something in them."""
    kept = [
        index
        for index, column in enumerate(table.columns)
        if any(row[index].text for row in table.rows) or (column.heading and column.rank == 0)
    ]
    rows = [tuple(row[index] for index in kept) for row in table.rows]
    return replace(table, columns=tuple(table.columns[index] for index in kept), rows=rows)


def without_middle(text: str, width: int, head: int) -> str:
    """A text of at most this width, which keeps that many letters of its start, and its end.

    >>> without_middle("params.layers[0].kernel", 12, 4)
    'para….kernel'
    """
    return text if len(text) <= width else f"{text[:head]}…{text[len(text) - (width - head - 1) :]}"


def _in_one_line(text: str) -> str:
    """A text with its control characters escaped as in Python."""
    return text if text.isprintable() else "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def _wrapped(text: str, width: int) -> list[str]:
    """A text, wrapped at spaces."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _added_up(table: Table, width: int) -> _Fit:
    """The first fit in which equal rows are merged; merged amounts may need wider columns."""
    fit, room = _best_fit(table, width).added_up(), width
    for _ in range(_MOST_TRIES):
        if fit.total <= width:
            break
        room -= fit.total - width
        fit = _best_fit(table, room).added_up()
    return fit


def _best_fit(table: Table, width: int) -> _Fit:
    """The first that fits: unchanged, without extra columns, shortened, wrapped, with short names, fewer columns."""
    ranks = sorted({column.rank for column in table.columns}, reverse=True)
    extra = [column.rank for column in table.columns if column.is_extra]
    for most in (rank for rank in ranks if extra and rank >= min(extra) - 1):
        fit = _Fit(table, _up_to(table, most), 0)
        if fit.total <= width:
            return fit
    for most in ranks:
        shown = _up_to(table, most)
        for level in range(3):
            fit = _Fit(table, shown, level)
            if fit.total <= width:
                return fit
        narrow = fit.wrapped(width)
        if narrow is not None:
            return narrow
        for level in range(3) if not extra or most < min(extra) else ():  # extra columns say less than names
            narrow = _Fit(table, shown, level).with_short_names(width)
            if narrow is not None:
                return narrow
    return fit.stacked(width)


def _up_to(table: Table, most: int) -> tuple[int, ...]:
    """The columns of at most this rank."""
    return tuple(index for index, column in enumerate(table.columns) if column.rank <= most)


class _Fit:
    """A table with some of its columns and their widths."""

    def __init__(self, table: Table, shown: tuple[int, ...], level: int) -> None:
        self._columns = [table.columns[index] for index in shown]
        distinct = {id(row): tuple(row[index] for index in shown) for row in table.rows}
        self._rows = [distinct[id(row)] for row in table.rows]
        self._level = level
        self.widths = [
            max([cell_len(column.heading), *(cell_len(row[at].shown(level)) for row in self._rows)])
            for at, column in enumerate(self._columns)
        ]

    @property
    def columns(self) -> list[Column]:
        """The columns that it has."""
        return self._columns

    @property
    def total(self) -> int:
        """The width of the table."""
        return sum(self.widths) + len(_GAP) * (len(self.widths) - 1)

    def wrapped(self, width: int) -> _Fit | None:
        """The table with its widest column of words narrowed; None if that is not enough."""
        wrapping = [at for at, column in enumerate(self._columns) if column.wraps]
        if not wrapping:
            return None
        at = max(wrapping, key=lambda at: self.widths[at])
        room = self.widths[at] - (self.total - width)
        if room < _LEAST_WRAPPED:
            return None
        texts = {row[at].shown(self._level) for row in self._rows} | {self._columns[at].heading}
        lines = [_wrapped(text, room) for text in texts]
        if max(map(len, lines)) > _MOST_LINES or max(cell_len(line) for text in lines for line in text) > room:
            return None
        self.widths[at] = room
        return self

    def with_short_names(self, width: int) -> _Fit | None:
        """The table whose long names lost their middle; None if that is not enough, or if names then are the same."""
        for at, column in enumerate(self._columns):
            room = self.widths[at] - (self.total - width)
            if not column.is_name or self.widths[at] <= _LONG_NAME or room < _LEAST_NAME:
                continue
            names = {row[at].shown(self._level) for row in self._rows}
            for head in (room // 3, room // 6, room // 2, 0):
                short = {name: without_middle(name, room, head) for name in names}
                if len(set(short.values())) == len(names) and max(map(cell_len, short.values())) <= room:
                    cells = [Cell(short[row[at].shown(self._level)], style=row[at].style) for row in self._rows]
                    self._rows = [(*row[:at], cell, *row[at + 1 :]) for row, cell in zip(self._rows, cells)]
                    self.widths[at] = room
                    return self
        return None

    def stacked(self, width: int) -> _Fit:
        """The table in which first cells may be wider than their column."""
        others = self.total - self.widths[0]
        self.widths[0] = max(cell_len(self._columns[0].heading), min(self.widths[0], width - others))
        return self

    def added_up(self) -> _Fit:
        """The table with equal rows merged and their amounts added, ordered by the last amount, largest first."""
        amounts = [at for at, column in enumerate(self._columns) if column.total is not None]
        alike: dict[tuple[str | None, ...], list[tuple[Cell, ...]]] = {}
        for row in self._rows:
            looks = (
                None if at in amounts and cell.amount is not None else cell.shown(self._level)
                for at, cell in enumerate(row)
            )
            alike.setdefault(tuple(looks), []).append(row)
        if not amounts or len(alike) == len(self._rows):
            return self
        rows = [
            rows[0] if len(rows) == 1 else tuple(map(self._sum, range(len(rows[0])), zip(*rows)))
            for rows in alike.values()
        ]
        last = amounts[-1]
        rows.sort(key=lambda row: -(row[last].amount or 0.0))
        self._rows = rows
        for at in amounts:
            self.widths[at] = max([self.widths[at], *(cell_len(row[at].shown(self._level)) for row in rows)])
        return self

    def _sum(self, at: int, cells: Sequence[Cell]) -> Cell:
        total, given = self._columns[at].total, [cell.amount for cell in cells if cell.amount is not None]
        if total is None or len(given) < len(cells):
            return cells[0]
        whole = sum(given)
        return Cell(total(whole), style=cells[0].style, amount=whole)

    def lines(self) -> Iterator[Text]:
        yield self._line([column.heading for column in self._columns], ["bold"] * len(self._columns))
        yield self._line(["─" * width for width in self.widths], [""] * len(self.widths))
        for row in self._rows:
            yield from self._row(row)

    def _row(self, row: tuple[Cell, ...]) -> Iterator[Text]:
        texts = [cell.shown(self._level) for cell in row]
        if texts and cell_len(texts[0]) > self.widths[0]:
            yield Text(texts[0], style=row[0].style)
            texts[0] = ""
        cells = [
            _wrapped(text, width) if column.wraps else [text]
            for text, width, column in zip(texts, self.widths, self._columns)
        ]
        for parts in zip_longest(*cells, fillvalue=""):
            yield self._line(parts, [cell.style for cell in row])

    def _line(self, texts: Sequence[str], styles: Sequence[str]) -> Text:
        line = Text(no_wrap=True, overflow="ignore")
        for at, (text, style, column) in enumerate(zip(texts, styles, self._columns)):
            space = " " * (self.widths[at] - cell_len(text))
            line.append(_GAP if at else "")
            line.append(space if column.is_number else "")
            line.append(text, style=style)
            line.append("" if column.is_number else space)
        line.rstrip()
        return line
