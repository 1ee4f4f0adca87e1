"""Lines at which a compiler's program sends more than pyshardy's own partitioner would."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from pyshardy.core.text import format_bytes
from pyshardy.costing.traffic import Traffic
from pyshardy.source.places import SourcePlace, format_place

_TIMES = 2
"""From this factor on, a line is named."""


@dataclass(frozen=True, slots=True)
class Excess:
    """A line at which a compiler's program sends at least twice as much as pyshardy's own partitioner would.

    Attributes:
        place: The line.
        sent_bytes: The bytes that every device sends for it as compiled.
        own_bytes: The bytes that it would send as pyshardy partitions the program.
    """

    place: SourcePlace
    sent_bytes: int
    own_bytes: int

    def __str__(self) -> str:
        sent, own = format_bytes(self.sent_bytes), format_bytes(self.own_bytes)
        return f"{format_place(self.place)}: {sent} as compiled, {own} as pyshardy's own partitioner would"

    def to_json(self) -> dict[str, Any]:
        """The line as JSON-ready data."""
        file, line, _ = self.place
        return {"file": file, "line": line, "sent_bytes": self.sent_bytes, "own_bytes": self.own_bytes}


def excesses(compiled: Traffic, own: Traffic) -> tuple[Excess, ...]:
    """The lines at which a program sends at least twice as much as another, those with the largest difference first.

    >>> excesses(Traffic(()), Traffic(()))
    ()
    """
    sent, less = _by_line(compiled), _by_line(own)
    found = [Excess((*line, 0), size, less[line]) for line, size in sent.items() if size >= _TIMES * max(less[line], 1)]
    return tuple(sorted(found, key=lambda one: one.own_bytes - one.sent_bytes))


def _by_line(traffic: Traffic) -> Counter[tuple[str, int]]:
    found: Counter[tuple[str, int]] = Counter()
    for row in traffic.collectives:
        if row.place is not None and row.is_counted:
            found[row.place[:2]] += row.total_bytes
    return found
