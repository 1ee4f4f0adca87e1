"""What a compiler makes of a whole program, beside the estimate, as plain data and as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.text import Text

from pyshardy.core.text import format_bytes
from pyshardy.costing.traffic import AxesTotal, KindTotal
from pyshardy.report.layout import Cell, Column, Table, paragraph
from pyshardy.report.printing import Page, Printable
from pyshardy.report.replications import Replication

WITHIN = 0.2
"""An estimate holds if it differs by at most this share from what is compiled."""
_COUNTS = 0.001
"""The share of the peak from which on a part of the memory counts."""
_SCATTERED = "the compiler makes one reduce_scatter of an all_reduce whose result is sliced, which sends half"
_SIDES = {True: "estimated", False: "partitioned"}


@dataclass(frozen=True, slots=True)
class MemoryCheck:
    """A part of a device's memory as compiled, beside the estimate.

    Attributes:
        part: The part in words.
        compiled: The bytes as compiled.
        estimated: The bytes as estimated; None if they were not.
    """

    part: str
    compiled: int
    estimated: int | None = None

    @property
    def change(self) -> float | None:
        """How much more is compiled than estimated, as a share of the estimate; None if nothing was estimated."""
        return _change(self.compiled, self.estimated or 0)

    def to_json(self) -> dict[str, Any]:
        """The row as JSON-ready data."""
        return asdict(self) | {"holds": None if self.change is None else abs(self.change) <= WITHIN}


@dataclass(frozen=True, slots=True)
class CollectivesCheck:
    """The collectives of one kind along the same axes as compiled, beside the estimate.

    Attributes:
        kind: The kind.
        axes: The names of the mesh axes, such as "data, model".
        compiled: Those of the compiled program; None if there are none.
        estimated: Those of the estimate, or of the partitioned program if nothing was estimated; None if none.
    """

    kind: str
    axes: str
    compiled: AxesTotal | None
    estimated: AxesTotal | None

    @property
    def change(self) -> float | None:
        """How many more bytes are sent than estimated, as a share of the estimate; None if none were estimated."""
        compiled, estimated = (one.sent_bytes_per_device if one else 0 for one in (self.compiled, self.estimated))
        return _change(compiled, estimated)

    @property
    def holds(self) -> bool:
        """Whether the compiled program sends as much as estimated, within a fifth."""
        return self.change is not None and abs(self.change) <= WITHIN

    def to_json(self, side: str = _SIDES[True]) -> dict[str, Any]:
        """The row as JSON-ready data.

        Args:
            side: What to call the other side.
        """
        sides = {name: _figures(one) for name, one in (("compiled", self.compiled), (side, self.estimated))}
        return {"kind": self.kind, "axes": self.axes, **sides, "holds": self.holds}


def memory_peak(parts: Mapping[str, int]) -> int:
    """The memory that a device needs, of its parts as compilers count them.

    >>> memory_peak({"argument": 100, "output": 60, "alias": 50, "temp": 40})
    150
    """
    return parts["argument"] + parts["output"] - parts["alias"] + parts["temp"]


def check_collectives(compiled: Sequence[AxesTotal], estimated: Sequence[AxesTotal]) -> tuple[CollectivesCheck, ...]:
    """The collectives of a compiled program beside the estimate, by kind and axes, those that send most first.

    >>> rows = check_collectives([AxesTotal("all_gather", "x", 2, 100)], [AxesTotal("all_gather", "x", 3, 110)])
    >>> [(row.kind, row.axes, row.holds) for row in rows]
    [('all_gather', 'x', True)]
    """
    sides = [{(one.kind, one.axes): one for one in totals} for totals in (compiled, estimated)]
    rows = [CollectivesCheck(*key, *(side.get(key) for side in sides)) for key in sorted({*sides[0], *sides[1]})]
    return tuple(sorted(rows, key=_most_sent, reverse=True))


def _most_sent(row: CollectivesCheck) -> int:
    return max(one.sent_bytes_per_device for one in (row.compiled, row.estimated) if one is not None)


def _change(compiled: int, estimated: int) -> float | None:
    if not estimated:
        return None if compiled else 0.0
    return compiled / estimated - 1


def _figures(total: AxesTotal | None) -> dict[str, Any] | None:
    if total is None:
        return None
    return {name: value for name, value in asdict(total).items() if name not in ("kind", "axes")}


@dataclass(frozen=True, slots=True)
class Confirmation(Printable):
    """What a compiler made of a program to the end, beside what was estimated.

    Attributes:
        compiler: Who compiled, such as "libtpu 0.0.52 for 8 x v5e (2x4)".
        hardware: The chip of the estimate; empty if nothing was estimated.
        seconds: The time of the compilation.
        memory: The bytes of a device by kind: "argument", "output", "alias", "temp" and "generated_code".
        memory_limit_bytes: The memory that a device has; None if unknown.
        out_of_memory: The compiler's message if the program does not fit; None if it fits or the compiler did not say.
        needed_bytes: The bytes that it says the program needs, if the program does not fit.
        collectives: The collectives of the compiled program by kind.
        partitioned: Those of the program as it was partitioned, before the compiler combined them.
        estimated_peak_bytes: The estimated peak memory; None if nothing was estimated.
        replications: The tensors that the compiler replicates.
        estimated_memory: The estimated parts of it: "argument", "output" (those not in the place of arguments), "temp".
        rows: The collectives by kind and axes, beside those of the estimate.
        layers: The number of layers, if versions with fewer were compiled; 0 if the whole program was.
        versions: The numbers of layers of these versions.
        peak_range: The least and the most peak memory that follows without one of the versions; None if unknown.
    """

    compiler: str
    hardware: str
    seconds: float
    memory: tuple[tuple[str, int], ...]
    memory_limit_bytes: float | None
    out_of_memory: str | None
    needed_bytes: int | None
    collectives: tuple[KindTotal, ...]
    partitioned: tuple[KindTotal, ...]
    estimated_peak_bytes: int | None
    replications: tuple[Replication, ...] = ()
    estimated_memory: tuple[tuple[str, int], ...] = ()
    rows: tuple[CollectivesCheck, ...] = ()
    layers: int = 0
    versions: tuple[int, ...] = ()
    peak_range: tuple[int, int] | None = None

    @property
    def memory_rows(self) -> tuple[MemoryCheck, ...]:
        """The parts of the memory beside the estimate, and the peak; none if the compiler did not say."""
        if not self.memory:
            return ()
        parts, said = dict(self.memory), dict(self.estimated_memory)
        own = parts["output"] - parts["alias"]
        rows = [
            MemoryCheck("arguments", parts["argument"], said.get("argument")),
            MemoryCheck("results with memory of their own", own, said.get("output")),
            MemoryCheck("temporary values", parts["temp"], said.get("temp")),
            MemoryCheck("peak", parts["argument"] + own + parts["temp"], self.estimated_peak_bytes),
            MemoryCheck("code, besides", parts["generated_code"]),
        ]
        return tuple(row for row in rows if row.compiled or row.estimated)

    @property
    def peak_bytes(self) -> int | None:
        """The memory of a device that the compiled program needs; None if the compiler did not say."""
        if self.needed_bytes is not None or not self.memory:
            return self.needed_bytes
        return memory_peak(dict(self.memory))

    @property
    def fits(self) -> bool | None:
        """Whether the compiled program fits into the memory of a device; None if that is unknown."""
        if self.out_of_memory is not None:
            return False
        if self.peak_bytes is None or self.memory_limit_bytes is None:
            return None
        return self.peak_bytes <= self.memory_limit_bytes

    def to_json(self) -> dict[str, Any]:
        """The confirmation as JSON-ready data, without the time of the compilation."""
        return {
            "compiler": self.compiler,
            "hardware": self.hardware or None,
            "fits": self.fits,
            "peak_bytes": self.peak_bytes,
            "memory": dict(self.memory),
            "memory_limit_bytes": self.memory_limit_bytes,
            "out_of_memory": self.out_of_memory,
            "collectives": [asdict(total) for total in self.collectives],
            "partitioned": [asdict(total) for total in self.partitioned],
            "estimated": {"peak_bytes": self.estimated_peak_bytes, "memory": dict(self.estimated_memory)},
            "memory_rows": [row.to_json() for row in self.memory_rows],
            "collectives_by_axes": [row.to_json(_SIDES[bool(self.hardware)]) for row in self.rows],
            "replications": [one.to_json() for one in self.replications],
            "shortened": self._shortened(),
        }

    def _shortened(self) -> dict[str, Any] | None:
        if not self.layers:
            return None
        peaks = None if self.peak_range is None else list(self.peak_range)
        return {"layers": self.layers, "compiled": list(self.versions), "peak_range": peaks}

    def tables(self) -> Page:
        """The memory, and the collectives, for a `rich` console."""

        def lines(width: int) -> list[Text]:
            took = "" if self.out_of_memory is not None else f" in {self.seconds:.0f} s"
            found = paragraph(f"compiled by {self.compiler}{took}", width, style="bold")
            found += paragraph(self._versions(), width) if self.layers else []
            found += paragraph(self._verdict(), width, style="" if self.fits is not False else "red")
            if self.memory:
                found += [Text(), *self._memory_table().lines(width)]
            if self.rows:
                found += [Text(), *self._collectives_table().lines(width)]
            if self.rows and self.hardware and self.out_of_memory is None:
                found += [Text(), *paragraph(self._holding(), width)]
                found += paragraph(_SCATTERED, width, "dim") if self._is_scattered() else []
            return found

        return Page(lines)

    def _versions(self) -> str:
        """What was compiled instead of the whole program, and how sure the memory is."""
        *first, last = map(str, self.versions)
        versions = f"{', '.join(first)} and {last} of its {self.layers} layers"
        said = f"not whole, but with {versions}; the figures are what follows"
        if self.peak_range is None or self.peak_bytes is None:
            return said
        least, most = map(format_bytes, self.peak_range)
        return f"{said}, those of memory less surely: without one of these versions, a peak of {least} to {most}"

    def _verdict(self) -> str:
        if self.out_of_memory is not None:
            needed = "" if self.needed_bytes is None else f": it needs {format_bytes(self.needed_bytes)}"
            return f"does not fit{needed}{self._limit()}"
        peak = "unknown memory" if self.peak_bytes is None else format_bytes(self.peak_bytes)
        said = {True: "fits", False: "does not fit", None: "needs"}[self.fits]
        return f"{said}: {peak} per device{self._limit()}{self._beside()}"

    def _limit(self) -> str:
        return "" if self.memory_limit_bytes is None else f" of {format_bytes(int(self.memory_limit_bytes))}"

    def _beside(self) -> str:
        if self.estimated_peak_bytes is None or not self.peak_bytes:
            return ""
        return f"; cost says {format_bytes(self.estimated_peak_bytes)}"

    def _memory_table(self) -> Table:
        columns = Column(""), *(Column(name, is_number=True) for name in ("compiled", "estimated", "change"))
        rows = [
            (
                Cell(row.part),
                Cell(format_bytes(row.compiled)),
                Cell(_bytes(row.estimated)),
                _memory_change(row, self.peak_bytes or 0),
            )
            for row in self.memory_rows
        ]
        return Table("memory per device", columns, rows)

    def _collectives_table(self) -> Table:
        columns = [Column("kind"), Column("along")]
        for name in ("compiled", _SIDES[bool(self.hardware)]):
            columns += [Column(name, is_number=True), Column("sent", is_number=True)]
        rows = [
            (_kind(row.kind), Cell(row.axes), *_cells(row.compiled), *_cells(row.estimated), _change_cell(row.change))
            for row in (*self.rows, *self._whole())
        ]
        return Table("collectives", (*columns, Column("change", is_number=True)), rows)

    def _whole(self) -> list[CollectivesCheck]:
        """All collectives together, if there are several rows."""
        sides = [
            [one for one in side if one is not None] for side in zip(*((r.compiled, r.estimated) for r in self.rows))
        ]
        return [CollectivesCheck("all", "", *map(_sum, sides))] if len(self.rows) > 1 else []

    def _is_scattered(self) -> bool:
        """Whether the compiler made reduce-scatters of all-reduces."""
        change = {(row.kind, row.axes): row.change for row in self.rows}
        less = [axes for (kind, axes), one in change.items() if kind == "all_reduce" and one is not None and one < 0]
        return any(change.get(("reduce_scatter", axes), 0.0) is None for axes in less)

    def _holding(self) -> str:
        """Whether the estimate of `cost` holds."""
        held = sum(row.holds for row in self.rows)
        of = f"{held} of {len(self.rows)} kinds of collectives"
        peak = next((row.change for row in self.memory_rows if row.part == "peak"), None)
        if peak is None:
            return f"within {WITHIN:.0%}, the estimate of cost holds for {of}"
        said, and_ = ("holds", "and") if abs(peak) <= WITHIN else ("does not hold", "but")
        return f"within {WITHIN:.0%}, the estimate of cost {said} for the peak of memory, {and_} for {of}"


def _sum(totals: Sequence[AxesTotal]) -> AxesTotal | None:
    if not totals:
        return None
    count, sent = (sum(numbers) for numbers in zip(*((one.count, one.sent_bytes_per_device) for one in totals)))
    return AxesTotal("all", "", count, sent, any(one.is_lower_bound for one in totals))


def _kind(kind: str) -> Cell:
    return Cell(kind, short=kind.removeprefix("collective_"))


def _cells(total: AxesTotal | None) -> tuple[Cell, Cell]:
    """The count and the bytes of one side."""
    if total is None:
        return Cell(""), Cell("")
    sign = "≥ " if total.is_lower_bound else ""
    return Cell(f"{sign}{total.count}"), Cell(sign + format_bytes(total.sent_bytes_per_device))


def _memory_change(row: MemoryCheck, peak: int) -> Cell:
    """How much more is compiled than estimated; empty if nothing was estimated, and for what does not count."""
    if row.estimated is None or max(row.compiled, row.estimated) < _COUNTS * peak:
        return Cell("")
    return _change_cell(row.change)


def _bytes(size: int | None) -> str:
    return "" if size is None else format_bytes(size)


def _change_cell(change: float | None) -> Cell:
    """How much more is compiled than estimated; red if the estimate does not hold.

    >>> [_change_cell(change).text for change in (0.031, -0.45, 4.2, None, -1.0)]
    ['+3%', '-45%', '5.2 times', 'new', 'gone']
    """
    if change is None or change == -1:
        return Cell("new" if change is None else "gone", style="red")
    text = f"{change:+.0%}" if change < 1 else f"{change + 1:.1f} times"
    return Cell(text, style="" if abs(change) <= WITHIN else "red")
