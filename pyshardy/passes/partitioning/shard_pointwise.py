"""`pyshardy-shard-pointwise`: elementwise ops that propagation does not know are sharded as their operands are."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from pyshardy.core.sharding import Meshes, TensorSharding, mesh_of, shard_counts
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.shardings import get_sharding, set_sharding
from pyshardy.passes.base import Anchor, Pass, PassContext
from pyshardy.passes.partitioning.op_rules import is_pointwise, rule_with_dynamic_sizes


@dataclass(frozen=True)
class ShardPointwise(Pass):
    """Shard the results of elementwise ops without a sharding rule like the operand that is split most.

    The results have no shardings yet: nothing propagates through such an op, so that what uses it would gather for it.
    """

    name = "pyshardy-shard-pointwise"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        meshes = context.meshes
        for inner in walk(op):
            if not inner.operands or any(map(get_sharding, inner.results)):
                continue
            spec = context.specs.spec(inner)
            if is_pointwise(spec) and rule_with_dynamic_sizes(spec) is None:
                sharding = most_split([get_sharding(value) for value in inner.operands], meshes)
                if sharding is not None and not sharding.is_fully_replicated and not sharding.unreduced:
                    for result in inner.results:
                        set_sharding(result, sharding)


def most_split(shardings: list[TensorSharding | None], meshes: Meshes) -> TensorSharding | None:
    """The sharding that makes most shards, the first of several."""
    found = [sharding for sharding in shardings if sharding is not None]
    return max(found, key=lambda sharding: prod(shard_counts(sharding, mesh_of(sharding, meshes))), default=None)
