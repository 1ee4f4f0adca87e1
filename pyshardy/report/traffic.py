"""What the devices of a partitioned program send to each other, as plain data."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from pyshardy.report.places import SourcePlace
from pyshardy.report.specs import axis_to_json


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
        source: File, line and column of the op; None if they are not known.
        user_source: The same of the user's own line, where `source` is in a library that the user calls.
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
    source: SourcePlace | None
    user_source: SourcePlace | None = None

    @property
    def place(self) -> SourcePlace | None:
        """The line of the user's program that needs it, as far as that is known."""
        return self.user_source or self.source

    @property
    def total_bytes(self) -> int:
        """Bytes that every device sends for it in all; a loop of unknown length counts as one round."""
        return self.times * self.sent_bytes_per_device

    def to_json(self) -> dict[str, Any]:
        """The row as JSON-ready data; the keys are the names of the attributes."""
        data = {field.name: getattr(self, field.name) for field in fields(self)}
        return data | {"axes": None if self.axes is None else list(map(axis_to_json, self.axes))}


@dataclass(frozen=True, slots=True)
class CollectiveGroup:
    """Collectives that are alike: of one kind, along the same axes, of the same shapes, for one cause in one line."""

    rows: tuple[CollectiveRow, ...]

    @property
    def first(self) -> CollectiveRow:
        """The first of them."""
        return self.rows[0]

    @property
    def count(self) -> int:
        """How often one of them runs; a loop of which the number of rounds is not known counts as one round."""
        return sum(row.times for row in self.rows)

    @property
    def total_bytes(self) -> int:
        """Bytes that every device sends for all of them."""
        return sum(row.total_bytes for row in self.rows)


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
    def groups(self) -> tuple[CollectiveGroup, ...]:
        """The collectives that are alike, those that send most first; those that do not count come last."""
        found: dict[Hashable, list[CollectiveRow]] = {}
        for row in self.collectives:
            found.setdefault(_group_key(row), []).append(row)
        groups = [CollectiveGroup(tuple(rows)) for rows in found.values()]
        return tuple(sorted(groups, key=lambda group: (not group.first.is_counted, -group.total_bytes)))

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
            "collectives": [row.to_json() for row in self.collectives],
        }


def _group_key(row: CollectiveRow) -> Hashable:
    """What collectives of one group have in common; the column of the place does not matter."""
    place = None if row.place is None else row.place[:2]
    shapes = row.dtype, row.shape_before, row.shape_after
    return row.kind, row.mesh, row.axes, row.group_size, shapes, row.is_lower_bound, row.is_counted, row.cause, place


def _total(kind: str, rows: Sequence[CollectiveRow]) -> KindTotal:
    count, sent = sum(row.times for row in rows), sum(row.total_bytes for row in rows)
    return KindTotal(kind, count, sent, any(row.is_lower_bound for row in rows))
