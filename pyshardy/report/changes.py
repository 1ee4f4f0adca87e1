"""What differs between two results, as plain data: tensors, collectives and totals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyshardy.core.sharding import TensorSharding
from pyshardy.report.folding import fold
from pyshardy.report.places import SourcePlace
from pyshardy.report.specs import Notation, axis_to_json, format_sharding


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
