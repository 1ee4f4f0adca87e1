"""The difference between two results, as plain data: tensors, collectives and totals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyshardy.core.folding import fold_names
from pyshardy.core.notation import axis_to_json
from pyshardy.core.sharding import TensorSharding
from pyshardy.report.specs import Notation, format_sharding
from pyshardy.source.places import SourcePlace


@dataclass(frozen=True, slots=True)
class Change:
    """Tensors with different shardings, or that only one of the two results has.

    Attributes:
        kind: "input", "output" or "value", the result of an op.
        name: Their name: `params['layers'][0..23]['w1']`, "`dot_general` in `mlp` at model.py:41".
        shape: The shape of one.
        dtype: Its element type; empty if unknown.
        before: The old sharding; None if there was none.
        after: The new sharding.
        count_before: The old number of tensors.
        count_after: The new number of tensors.
        bytes_before: The old bytes per device of all of them, for inputs and outputs.
        bytes_after: The new bytes per device.
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
        """Whether both have them, with different shardings; another device order also counts."""
        is_other = self.before is not self.after or self.count_before == self.count_after
        return bool(self.count_before and self.count_after) and is_other

    @property
    def is_more_alike(self) -> bool:
        """Whether both have them with equal shardings, but in different numbers."""
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
    """Equal collectives whose number or size has changed.

    Attributes:
        kind: Their name, such as "all_gather".
        axes: The mesh axes along which devices communicate; None if the groups do not follow mesh axes.
        cause: Their cause, such as "reshard of operand 1 of stablehlo.dot_general".
        place: The line of the user's program that needs them.
        ops: The names that JAX gave the ops which need them.
        count_before: The old number of runs.
        count_after: The new number of runs.
        bytes_before: The old bytes that every device sent for all of them.
        bytes_after: The new bytes.
    """

    kind: str
    axes: tuple[str, ...] | None
    cause: str | None
    place: SourcePlace | None
    ops: tuple[str, ...]
    count_before: int
    count_after: int
    bytes_before: int
    bytes_after: int

    @property
    def what(self) -> str:
        """Whether they were added, removed or changed."""
        return "added" if not self.count_before else "removed" if not self.count_after else "changed"

    def to_json(self) -> dict[str, Any]:
        """The change as JSON-ready data."""
        return {
            "what": self.what,
            "kind": self.kind,
            "axes": None if self.axes is None else [axis_to_json(axis) for axis in self.axes],
            "cause": self.cause,
            "place": None if self.place is None else list(self.place),
            "ops": list(self.ops),
            "count_before": self.count_before,
            "count_after": self.count_after,
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
        }


@dataclass(frozen=True, slots=True)
class Total:
    """The bytes per device before and after.

    Attributes:
        name: Their kind: "inputs", "outputs", "sent in collectives", "held at most".
        before: The old number.
        after: The new number.
    """

    name: str
    before: int
    after: int

    def to_json(self) -> dict[str, Any]:
        """The total as JSON-ready data."""
        return {"name": self.name, "before": self.before, "after": self.after}


@dataclass(frozen=True, slots=True)
class Communication:
    """The difference in communication.

    Attributes:
        collectives: The added, removed and changed collectives, those that differ most first.
        totals: The bytes that a device sends, and its peak memory.
        unknown: Why the difference is unknown, if it is.
    """

    collectives: tuple[CollectiveChange, ...] = ()
    totals: tuple[Total, ...] = ()
    unknown: str | None = None


def folded_changes(changes: Sequence[Change]) -> tuple[Change, ...]:
    """The changes, with those of repeated layers folded.

    >>> changes = [Change("input", f"w[{layer}]", (8,), "f32", None, None, 1, 0, 32, None) for layer in range(3)]
    >>> [(found.name, found.count_before, found.bytes_before) for found in folded_changes(changes)]
    [('w[0..2]', 3, 96)]
    """
    keys = [
        (one.kind, one.shape, one.dtype, one.before, one.after, one.count_before, one.count_after) for one in changes
    ]
    found = []
    for folded in fold_names((one.name, key) for one, key in zip(changes, keys)):
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
