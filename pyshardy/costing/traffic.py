"""The collectives of a partitioned program, as plain data."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from pyshardy.core.needs import Need
from pyshardy.core.notation import axis_to_json
from pyshardy.source.places import SourcePlace


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """One collective of a per-device program.

    Attributes:
        kind: Its name without the dialect, such as "all_gather".
        mesh: The mesh of the axes, as MLIR writes its name; None without a mesh or a name.
        axes: The mesh axes along which devices communicate; None if the groups do not follow mesh axes.
        group_size: The size of a group; 2 for a permute.
        dtype: Element type.
        shape_before: The shape of the operand on a device.
        shape_after: The shape of the result on a device.
        sent_bytes_per_device: The most bytes that a device sends per run.
        times: How often it runs; a loop with an unknown trip count counts as one round.
        is_in_loop: Whether it is in a loop.
        is_lower_bound: Whether it is in a loop with an unknown trip count.
        is_counted: Whether the totals include it. Of a conditional, they include only the branch that sends most.
        op: The op that needs it, by the name that JAX gave it; None if it has none.
        cause: The part of that op that needs it, such as "reshard of operand 1 of stablehlo.dot_general"; None for the
            op itself. In a compiler's program the name of the op, such as "dot_general in the gradient".
        source: File, line and column of the op; None if unknown.
        user_source: The place in the user's own code, if `source` is in a library that the user calls.
        windowed: For a permute, the collective of which it is a part, such as "all_gather": a compiler cut that into
            permutes beside a product.
        need: The same as `cause`, as data, if pyshardy made it; it is no part of `to_json`.
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
    windowed: str | None = None
    need: Need | None = None

    @property
    def place(self) -> SourcePlace | None:
        """The line of the user's program that needs it, if known."""
        return self.user_source or self.source

    @property
    def total_bytes(self) -> int:
        """The bytes that every device sends in all runs; a loop with an unknown trip count counts as one round."""
        return self.times * self.sent_bytes_per_device

    def to_json(self) -> dict[str, Any]:
        """The row as JSON-ready data; the keys are the names of the attributes."""
        data = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "need"}
        return data | {"axes": None if self.axes is None else list(map(axis_to_json, self.axes))}


@dataclass(frozen=True, slots=True)
class CollectiveGroup:
    """Equal collectives: of one kind, along the same axes, with the same shapes, for one cause in one line."""

    rows: tuple[CollectiveRow, ...]

    @property
    def first(self) -> CollectiveRow:
        """The first of them."""
        return self.rows[0]

    @property
    def count(self) -> int:
        """The number of their runs; a loop with an unknown trip count counts as one round."""
        return sum(row.times for row in self.rows)

    @property
    def total_bytes(self) -> int:
        """The bytes that every device sends for all of them."""
        return sum(row.total_bytes for row in self.rows)


@dataclass(frozen=True, slots=True)
class KindTotal:
    """All collectives of one kind.

    Attributes:
        kind: The kind.
        count: The number of runs; a loop with an unknown trip count counts as one round.
        sent_bytes_per_device: The bytes that every device sends for them.
        is_lower_bound: Whether there is such a loop, so that the figures may be larger.
    """

    kind: str
    count: int
    sent_bytes_per_device: int
    is_lower_bound: bool = False


OTHER_GROUPS = "other groups"
"""What stands for the axes of groups that follow none."""


@dataclass(frozen=True, slots=True)
class AxesTotal:
    """All collectives of one kind along the same axes.

    Attributes:
        kind: The kind.
        axes: The names of the mesh axes in the order of the mesh, such as "data, model", or `OTHER_GROUPS`.
        count: The number of runs; a loop with an unknown trip count counts as one round.
        sent_bytes_per_device: The bytes that every device sends for them.
        is_lower_bound: Whether there is such a loop, so that the figures may be larger.
    """

    kind: str
    axes: str
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
        """The groups of equal collectives, those that send most first; those that are not counted come last."""
        found: dict[Hashable, list[CollectiveRow]] = {}
        for row in self.collectives:
            found.setdefault(_group_key(row), []).append(row)
        groups = [CollectiveGroup(tuple(rows)) for rows in found.values()]
        return tuple(sorted(groups, key=lambda group: (not group.first.is_counted, -group.total_bytes)))

    @property
    def sent_bytes_per_device(self) -> int:
        """The bytes that every device sends; a loop with an unknown trip count counts as one round."""
        return sum(total.sent_bytes_per_device for total in self.kinds)

    @property
    def is_lower_bound(self) -> bool:
        """Whether there is a loop with an unknown trip count, so that more may be sent."""
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
    """The properties that collectives of one group share; the column of the place does not matter."""
    place = None if row.place is None else row.place[:2]
    shapes = row.dtype, row.shape_before, row.shape_after
    return row.kind, row.mesh, row.axes, row.group_size, shapes, row.is_lower_bound, row.is_counted, row.cause, place


def _total(kind: str, rows: Sequence[CollectiveRow]) -> KindTotal:
    count, sent = sum(row.times for row in rows), sum(row.total_bytes for row in rows)
    return KindTotal(kind, count, sent, any(row.is_lower_bound for row in rows))
