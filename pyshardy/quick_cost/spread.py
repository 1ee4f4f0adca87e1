"""Gives elementwise ops without a sharding rule the shardings of their operands, as `pyshardy-shard-pointwise` does."""

from __future__ import annotations

from collections.abc import Sequence

from pyshardy.core.axis_lists import is_prefix
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import Meshes
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.quick_cost.skeleton import Entry
from pyshardy.transforms.reshards.most_split import most_split
from pyshardy.transforms.reshards.op_rules import (
    names_without_rule,
    rule_with_dynamic_sizes,
    takes_sharding_of_operands,
)

Shardings = Sequence[TensorSharding | None]


class Spread:
    """Applies the pass to the shardings of a program.

    Args:
        entries: The ops, each before its inner ops.
        meshes: The meshes of the program.
        specs: Describes ops.
    """

    def __init__(self, entries: Sequence[Entry], meshes: Meshes, specs: OpSpecReader) -> None:
        self.entries, self.meshes, self.specs = entries, meshes, specs
        names = names_without_rule()
        self.first = next((place for place, one in enumerate(entries) if one.op.name in names), None)
        self.names = names

    def apply(self, shardings: Shardings) -> Shardings:
        """The shardings after the pass; the same object if it changes none."""
        if self.first is None:
            return shardings
        found = list(shardings)
        done: set[int] = set()
        for entry in self.entries[self.first :]:
            if entry.op.name in self.names or not (not done or done.isdisjoint(entry.operands)):
                self._visit(entry, found, done)
        return found if done else shardings

    def _visit(self, entry: Entry, shardings: list[TensorSharding | None], done: set[int]) -> None:
        spec = self.specs.spec(entry.op)
        if not entry.operands or not takes_sharding_of_operands(spec):
            return
        if done.isdisjoint(entry.operands) and rule_with_dynamic_sizes(spec):
            return
        wanted = most_split([shardings[value] for value in entry.operands], self.meshes)
        if wanted is None or wanted.is_fully_replicated or wanted.unreduced:
            return
        for value in entry.results:
            old = shardings[value]
            if old is None or (old is not wanted and _extends(wanted, old)):
                shardings[value] = wanted
                done.add(value)


def _extends(sharding: TensorSharding, old: TensorSharding) -> bool:
    is_same_kind = sharding.mesh == old.mesh and not old.unreduced and sharding.rank == old.rank
    return is_same_kind and all(map(is_prefix, old.dim_axes, sharding.dim_axes))
