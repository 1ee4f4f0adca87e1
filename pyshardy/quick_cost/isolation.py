"""Finds the ops that can be replaced by their versions, because their reshards do not interact with others.

The passes merge a reshard with those before and after it, share it with others of the same value, and move it before
the op that computes its value where that is cheaper. An all-reduce followed by a slice becomes a reduce-scatter. If no
reshard of an op interacts with another, the passes partition the op in the program as they do alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyshardy.ir.trip_counts import LOOP
from pyshardy.quick_cost.skeleton import Entry, Skeleton
from pyshardy.quick_cost.versions import Shardings, Version

_SLICE = "stablehlo.slice"


def isolated(
    skeleton: Skeleton, found: Mapping[Entry, Version | None], shardings: Shardings, results: Shardings
) -> dict[Entry, Version | None]:
    """The versions that may replace their ops; None for all other ops.

    Args:
        skeleton: The program.
        found: The version of every op, if it has one.
        shardings: The sharding of every value.
        results: The shardings that the function must return.
    """
    return _Isolation(skeleton, found, shardings, results).choose()


class _Isolation:
    def __init__(
        self,
        skeleton: Skeleton,
        found: Mapping[Entry, Version | None],
        shardings: Shardings,
        results: Shardings,
    ) -> None:
        self.skeleton, self.found, self.shardings, self.results = skeleton, found, shardings, results
        self.takers: dict[int, int] = {}
        """The number of ops that may reshard each value."""
        self.given: set[int] = set()
        """The values that may be resharded or completed by the op that computes them."""
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
        self._take(unlike(self.skeleton.body.returned, self.results, self.shardings))
        self._note_moved()
        for entry, version in self.pending:
            if not self._is_alone(entry, version):
                chosen[entry] = None
        return chosen

    def _take(self, values: Iterable[int]) -> None:
        for value in values:
            self.takers[value] = self.takers.get(value, 0) + 1

    def _note(self, entry: Entry) -> None:
        """Record the values that an op without a version may reshard."""
        if not entry.blocks:
            self._take((*entry.operands, *entry.captured))
            self.given.update(entry.results)
            return
        wanted = handed_on(entry, self.shardings)
        if entry.op.name == LOOP:
            self._take(unlike(entry.operands, wanted[1], self.shardings))
        for block, shardings in zip(entry.blocks, wanted):
            self._take(unlike(block.returned, shardings, self.shardings))

    def _note_moved(self) -> None:
        """Record the values whose reshards may merge with one that moves before the op that computes its value."""
        makers = [self.skeleton.maker[value] for value in self.takers if value in self.skeleton.maker]
        for maker in makers:
            self._take([value for value in maker.operands if value in self.given])

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
        """Whether a reshard of the result of an op stays after the op."""
        version = self.found[maker]
        if version is None or version.taken:
            return False
        if maker.op.name == _SLICE or from_slice(maker, self.skeleton):
            return False
        return self.given.isdisjoint(maker.operands)


def handed_on(entry: Entry, shardings: Shardings) -> list[Shardings]:
    """The shardings that each block of a loop or a conditional must return."""
    wanted = [shardings[value] for value in entry.results]
    if entry.op.name == LOOP:
        condition, _ = entry.blocks
        return [[shardings[value] for value in condition.returned], wanted]
    return [wanted] * len(entry.blocks)


def unlike(values: Sequence[int], wanted: Shardings, shardings: Shardings) -> list[int]:
    """The values whose sharding differs from the required one."""
    return [value for value, target in zip(values, wanted) if shardings[value] is not target]


def from_slice(entry: Entry, skeleton: Skeleton) -> list[Entry]:
    """The chain of ops from a slice to an op, if each is the only user of the one before; else empty.

    The result of such a chain may be gathered at the slice.
    """
    chain: list[Entry] = []
    while len(entry.operands) == 1 and entry.op.name != _SLICE:
        (value,) = entry.operands
        maker = skeleton.maker.get(value)
        if maker is None or not skeleton.has_one_use(value):
            return []
        entry = maker
        chain.append(entry)
    return chain if entry.op.name == _SLICE else []
