"""What the devices of a partitioned program send to each other, as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """One collective of a per-device program.

    Attributes:
        kind: Its name without the dialect, such as "all_gather".
        axes: The mesh axes along which devices work together or move data; None if their groups fit no axes.
        group_size: How many devices work together; 2 for a permutation.
        dtype: Element type.
        shape_before: What a device holds before.
        shape_after: What it holds after.
        sent_bytes_per_device: Bytes that every device sends each time, at most.
        times: How often it runs; in a loop, per round.
        is_in_loop: Whether it is in a loop, whose number of rounds is not known.
        op: The op that made it necessary, under the name that JAX gave it; None if it has none.
        cause: What of that op did, such as "reshard of operand 1 of stablehlo.dot_general"; None if it is the op's own.
        source: File, line and column in the user's program; None if they are not known.
    """

    kind: str
    axes: tuple[str, ...] | None
    group_size: int
    dtype: str
    shape_before: tuple[int, ...]
    shape_after: tuple[int, ...]
    sent_bytes_per_device: int
    times: int
    is_in_loop: bool
    op: str | None
    cause: str | None
    source: tuple[str, int, int] | None

    @property
    def total_bytes(self) -> int:
        """Bytes that every device sends for it in all, counting a loop once."""
        return self.times * self.sent_bytes_per_device


@dataclass(frozen=True, slots=True)
class KindTotal:
    """All collectives of one kind.

    Attributes:
        kind: The kind.
        count: How often one runs, counting loops once.
        sent_bytes_per_device: Bytes that every device sends for them.
    """

    kind: str
    count: int
    sent_bytes_per_device: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """All collectives of a partitioned program, in program order."""

    collectives: tuple[CollectiveRow, ...]

    @property
    def kinds(self) -> tuple[KindTotal, ...]:
        """The totals per kind, by name."""
        names = sorted({row.kind for row in self.collectives})
        return tuple(_total(name, (row for row in self.collectives if row.kind == name)) for name in names)

    @property
    def sent_bytes_per_device(self) -> int:
        """Bytes that every device sends, counting loops once."""
        return sum(row.total_bytes for row in self.collectives)

    def to_json(self) -> dict[str, Any]:
        """The traffic as JSON-ready data; the keys are the names of the attributes."""
        return {
            "sent_bytes_per_device": self.sent_bytes_per_device,
            "kinds": [asdict(total) for total in self.kinds],
            "collectives": [asdict(row) for row in self.collectives],
        }


def _total(kind: str, rows: Iterable[CollectiveRow]) -> KindTotal:
    rows = list(rows)
    return KindTotal(kind, sum(row.times for row in rows), sum(row.total_bytes for row in rows))
