"""Merges equal constants, and equal broadcasts of one scalar, that have the same sharding in a candidate.

`sdy-constant-or-scalar-merger` merges them after propagation. The result depends on shardings, so it cannot run
once for all candidates.

Source: docs/semantics/export.md#sdy-constant-or-scalar-merger
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final

from pyshardy.core.sharding import TensorSharding
from pyshardy.quick_cost.skeleton import BlockSkeleton, Entry, Skeleton
from pyshardy.rules.properties import CONSTANTS

_BROADCAST: Final = "stablehlo.broadcast_in_dim"
_MOST_KEPT: Final = 16


class Merging:
    """Merges equal constants and broadcasts of candidates.

    Args:
        skeleton: The program, where nothing is merged.
    """

    def __init__(self, skeleton: Skeleton) -> None:
        self.skeleton = skeleton
        self._places = list(_places(skeleton.body, skeleton))
        self._merged: dict[tuple[tuple[int, int], ...], Skeleton] = {}

    def merged(self, shardings: Sequence[TensorSharding | None]) -> Skeleton:
        """The program with one op for each set of equal ones.

        Args:
            shardings: The sharding of every value, as propagation found it.
        """
        first: dict[Hashable, int] = {}
        twins: dict[int, int] = {}
        for block, static, scalar, value in self._places:
            earlier = first.setdefault((block, static, twins.get(scalar, scalar), shardings[value]), value)
            if earlier != value:
                twins[value] = earlier
        key = tuple(twins.items())
        found = self._merged.get(key)
        if found is None:
            if len(self._merged) >= _MOST_KEPT:
                self._merged.clear()
            found = self._merged[key] = with_twins(self.skeleton, twins)
        return found


def _places(block: BlockSkeleton, skeleton: Skeleton) -> Iterator[tuple[int, int, int, int]]:
    """Per op that may be merged, its block, what it is, the scalar that it broadcasts, and its result."""
    for entry in block.entries:
        for inner in entry.blocks:
            yield from _places(inner, skeleton)
        name = entry.op.name
        if entry.static is not None and (name in CONSTANTS or name == _BROADCAST and _is_scalar(entry)):
            yield id(block), entry.static, next(iter(entry.operands), -1), entry.results[0]


def _is_scalar(entry: Entry) -> bool:
    return entry.op.operands[0].type.shape == ()


def with_twins(skeleton: Skeleton, twins: Mapping[int, int]) -> Skeleton:
    """A program without some ops, whose results are replaced by equal ones.

    Args:
        skeleton: The program; it does not change.
        twins: By the result of an op that is left out the value in its place.
    """
    if not twins:
        return skeleton
    return skeleton.with_body(_block(skeleton.body, twins), twins)


def _block(block: BlockSkeleton, twins: Mapping[int, int]) -> BlockSkeleton:
    entries = [_entry(entry, twins) for entry in block.entries if not entry.results or entry.results[0] not in twins]
    return BlockSkeleton(block.node, block.arguments, entries, _values(block.returned, twins))


def _entry(entry: Entry, twins: Mapping[int, int]) -> Entry:
    if not entry.blocks and twins.keys().isdisjoint(entry.operands) and twins.keys().isdisjoint(entry.captured):
        return entry
    found = Entry(entry.op, entry.index)
    found.static, found.results = entry.static, entry.results
    found.operands = _values(entry.operands, twins)
    found.captured = tuple(dict.fromkeys(_values(entry.captured, twins)))
    found.blocks = tuple([_block(block, twins) for block in entry.blocks])
    return found


def _values(values: Sequence[int], twins: Mapping[int, int]) -> tuple[int, ...]:
    return tuple([twins.get(value, value) for value in values])
