"""Which ops may be replaced by their versions where they stand, as no reshard around them has to do with another.

Reshards are joined with those before and behind them, shared with others of the same value, and done before the op
that makes their value where that is cheaper; an all-reduce that is cut afterwards becomes a reduce-scatter. An op none
of whose reshards meets another one is partitioned there as it is alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.functions import SHARDING
from pyshardy.quick_cost.skeleton import BlockSkeleton, Entry, Skeleton
from pyshardy.quick_cost.versions import Version

_SLICE = "stablehlo.slice"


def isolated(
    skeleton: Skeleton, found: Mapping[Entry, Version | None], shardings: Sequence[TensorSharding | None]
) -> dict[Entry, Version | None]:
    """The versions that may stand in the place of their ops; None for all other ops.

    Args:
        skeleton: The program.
        found: The version of every op, if it has one.
        shardings: The sharding of every value.
    """
    return _Isolation(skeleton, found, shardings).choose()


class _Isolation:
    def __init__(
        self,
        skeleton: Skeleton,
        found: Mapping[Entry, Version | None],
        shardings: Sequence[TensorSharding | None],
    ) -> None:
        self.skeleton, self.found, self.shardings = skeleton, found, shardings
        self.takers: dict[int, int] = {}
        """Per value, how many ops may reshard it."""
        self.given: set[int] = set()
        """The values that may be resharded or completed where they are made."""
        self.pending: list[tuple[Entry, Version]] = []

    def choose(self) -> dict[Entry, Version | None]:
        chosen = dict(self.found)
        for entry, version in chosen.items():
            if version is None:
                self._note(entry)
            elif version.taken or version.given:
                self.pending.append((entry, version))
                self._take([entry.operands[index] for index in version.taken])
                self.given.update([entry.results[index] for index in version.given])
        self._note_ends(self.skeleton.body, self._results_of_function())
        self._note_moved()
        for entry, version in self.pending:
            if not self._is_alone(entry, version):
                chosen[entry] = None
        return chosen

    def _take(self, values: Iterable[int]) -> None:
        for value in values:
            self.takers[value] = self.takers.get(value, 0) + 1

    def _note(self, entry: Entry) -> None:
        """Note what an op that must be looked at where it stands may reshard."""
        if not entry.blocks:
            self._take((*entry.operands, *entry.captured))
            self.given.update(entry.results)
            return
        is_loop = len(entry.operands) == len(entry.results)
        wanted = [self.shardings[value] for value in entry.results]
        if is_loop:
            self._take(self._unlike(entry.operands, wanted))
        for block in entry.blocks[1:] if is_loop else entry.blocks:
            self._note_ends(block, wanted)

    def _note_moved(self) -> None:
        """Note what a reshard may be joined with that is done before the op that makes its value."""
        makers = [self.skeleton.maker[value] for value in self.takers if value in self.skeleton.maker]
        for maker in makers:
            self._take([value for value in maker.operands if value in self.given])

    def _note_ends(self, block: BlockSkeleton, wanted: Sequence[TensorSharding | None]) -> None:
        self._take(self._unlike(block.returned, wanted))

    def _unlike(self, values: Sequence[int], wanted: Sequence[TensorSharding | None]) -> list[int]:
        """The values that are not sharded as they are to be."""
        return [value for value, target in zip(values, wanted) if self.shardings[value] is not target]

    def _results_of_function(self) -> list[TensorSharding | None]:
        entries = self.skeleton.function.attrs.get("res_attrs")
        return [entry.get(SHARDING) for entry in entries] if entries else [None] * len(self.skeleton.body.returned)

    def _is_alone(self, entry: Entry, version: Version) -> bool:
        if any(value in self.takers for value in [entry.results[index] for index in version.given]):
            return False
        if version.taken and any(value in self.takers for value in entry.results):
            return False
        if version.given and not self.given.isdisjoint(entry.operands):
            return False
        for index in version.taken:
            value = entry.operands[index]
            if self.takers[value] > 1 or value in self.given or entry.operands.count(value) > 1:
                return False
            maker = self.skeleton.maker.get(value)
            if maker is not None and not self._is_left_where_it_is(maker):
                return False
        return True

    def _is_left_where_it_is(self, maker: Entry) -> bool:
        """Whether a reshard of what an op makes is not done before it."""
        version = self.found[maker]
        if version is None or version.taken:
            return False
        return self.given.isdisjoint(maker.operands) and not from_slice(maker, self.skeleton)


def from_slice(entry: Entry, skeleton: Skeleton) -> list[Entry]:
    """The ops that an op is made of from a slice on, if each is the only user of the one before; none if it is not so.

    What is made of a slice alone may be gathered at the slice.
    """
    chain: list[Entry] = []
    while len(entry.operands) == 1 and entry.op.name != _SLICE:
        (value,) = entry.operands
        maker = skeleton.maker.get(value)
        if maker is None or not skeleton.values[value].has_one_use():
            return []
        entry = maker
        chain.append(entry)
    return chain if entry.op.name == _SLICE else []
