"""What the devices of a partitioned program send to each other, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """One collective of a per-device program.

    Attributes:
        kind: Its name without the dialect, such as "all_gather".
        mesh: The mesh that the axes are of, as MLIR writes its name; None if it has none, or there is none.
        axes: The mesh axes along which devices work together or move data; None if their groups fit no axes.
        group_size: How many devices work together; 2 for a permutation.
        dtype: Element type.
        shape_before: What a device holds before.
        shape_after: What it holds after.
        sent_bytes_per_device: Bytes that every device sends each time, at most.
        times: How often it runs; a loop of which the number of rounds is not known counts as one round.
        is_in_loop: Whether it is in a loop.
        is_lower_bound: Whether it is in a loop of which the number of rounds is not known.
        is_counted: Whether the totals count it. Of the branches of a conditional, at most one of which runs, they count
            the one that sends most.
        op: The op that made it necessary, under the name that JAX gave it; None if it has none.
        cause: What of that op did, such as "reshard of operand 1 of stablehlo.dot_general"; None if it is the op's own.
        source: File, line and column in the user's program; None if they are not known.
    """

    kind: str
    mesh: str | None
    axes: tuple[str, ...] | None
    group_size: int
    dtype: str
    shape_before: tuple[int, ...]
    shape_after: tuple[int, ...]
    sent_bytes_per_device: int
    times: int
    is_in_loop: bool
    is_lower_bound: bool
    is_counted: bool
    op: str | None
    cause: str | None
    source: tuple[str, int, int] | None

    @property
    def total_bytes(self) -> int:
        """Bytes that every device sends for it in all; a loop of unknown length counts as one round."""
        return self.times * self.sent_bytes_per_device


@dataclass(frozen=True, slots=True)
class KindTotal:
    """All collectives of one kind.

    Attributes:
        kind: The kind.
        count: How often one runs; a loop of which the number of rounds is not known counts as one round.
        sent_bytes_per_device: Bytes that every device sends for them.
        is_lower_bound: Whether there is such a loop, so that it may be more.
    """

    kind: str
    count: int
    sent_bytes_per_device: int
    is_lower_bound: bool = False


@dataclass(frozen=True, slots=True)
class Traffic:
    """All collectives of a partitioned program, in program order."""

    collectives: tuple[CollectiveRow, ...]

    @property
    def kinds(self) -> tuple[KindTotal, ...]:
        """The totals per kind, by name."""
        counted = [row for row in self.collectives if row.is_counted]
        names = sorted({row.kind for row in counted})
        return tuple(_total(name, [row for row in counted if row.kind == name]) for name in names)

    @property
    def sent_bytes_per_device(self) -> int:
        """Bytes that every device sends; a loop of which the number of rounds is not known counts as one round."""
        return sum(total.sent_bytes_per_device for total in self.kinds)

    @property
    def is_lower_bound(self) -> bool:
        """Whether there is a loop of which the number of rounds is not known, so that more may be sent."""
        return any(total.is_lower_bound for total in self.kinds)

    def to_json(self) -> dict[str, Any]:
        """The traffic as JSON-ready data; the keys are the names of the attributes."""
        return {
            "sent_bytes_per_device": self.sent_bytes_per_device,
            "is_lower_bound": self.is_lower_bound,
            "kinds": [asdict(total) for total in self.kinds],
            "collectives": [asdict(row) for row in self.collectives],
        }


def _total(kind: str, rows: Sequence[CollectiveRow]) -> KindTotal:
    count, sent = sum(row.times for row in rows), sum(row.total_bytes for row in rows)
    return KindTotal(kind, count, sent, any(row.is_lower_bound for row in rows))
