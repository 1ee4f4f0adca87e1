"""What a compiler makes of a whole program, beside the estimate, as plain data and as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.text import Text

from pyshardy.core.text import format_bytes
from pyshardy.report.layout import Cell, Column, Table, paragraph
from pyshardy.report.printing import Page, html, printed
from pyshardy.report.replications import Replication
from pyshardy.report.traffic import KindTotal

_MEMORY = {
    "argument": "arguments",
    "output": "results",
    "alias": "results in the place of arguments",
    "temp": "temporary values",
    "generated_code": "code",
}
"""The parts of the memory, as the compiler counts them."""


@dataclass(frozen=True, slots=True)
class Confirmation:
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

    @property
    def peak_bytes(self) -> int | None:
        """The memory of a device that the compiled program needs; None if the compiler did not say."""
        if self.needed_bytes is not None or not self.memory:
            return self.needed_bytes
        parts = dict(self.memory)
        return parts["argument"] + parts["output"] - parts["alias"] + parts["temp"]

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
            "estimated": {"peak_bytes": self.estimated_peak_bytes},
            "replications": [one.to_json() for one in self.replications],
        }

    def tables(self) -> Page:
        """The memory, and the collectives, for a `rich` console."""

        def lines(width: int) -> list[Text]:
            took = "" if self.out_of_memory is not None else f" in {self.seconds:.0f} s"
            found = paragraph(f"compiled by {self.compiler}{took}", width, style="bold")
            found += paragraph(self._verdict(), width, style="" if self.fits is not False else "red")
            if self.memory:
                found += [Text(), *self._memory_table().lines(width)]
            if self.collectives or self.partitioned:
                found += [Text(), *self._collectives_table().lines(width)]
            return found

        return Page(lines)

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
        change = self.estimated_peak_bytes / self.peak_bytes - 1
        return f"; cost says {format_bytes(self.estimated_peak_bytes)} ({change:+.0%})"

    def _memory_table(self) -> Table:
        rows = [(Cell(_MEMORY[kind]), Cell(format_bytes(size))) for kind, size in self.memory if size]
        return Table("memory per device, as compiled", (Column(""), Column("bytes", is_number=True)), rows)

    def _collectives_table(self) -> Table:
        sides = [("compiled", self.collectives), ("partitioned", self.partitioned)]
        columns = [Column("kind")]
        for name, _ in sides:
            columns += [Column(name, is_number=True), Column("bytes sent", is_number=True)]
        kinds = sorted({total.kind for _, totals in sides for total in totals})
        rows = [(Cell(kind), *_cells(kind, [totals for _, totals in sides])) for kind in kinds]
        return Table("collectives", tuple(columns), rows)

    def __str__(self) -> str:
        return printed(self.tables())

    def _repr_html_(self) -> str:
        return html(self.tables())


def _cells(kind: str, sides: Sequence[Sequence[KindTotal]]) -> Iterator[Cell]:
    """The count and the bytes of a kind on every side."""
    for totals in sides:
        found = next((total for total in totals if total.kind == kind), None)
        sign = "≥ " if found is not None and found.is_lower_bound else ""
        yield Cell("" if found is None else f"{sign}{found.count}")
        yield Cell("" if found is None else sign + format_bytes(found.sent_bytes_per_device))
