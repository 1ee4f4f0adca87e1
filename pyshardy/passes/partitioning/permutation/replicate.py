"""Replicating what an op cannot do shard by shard (partitioner spec, section 3.2)."""

from __future__ import annotations

from pyshardy.core.sharding import Meshes, TensorSharding, common_mesh, shard_counts
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import get_sharding
from pyshardy.passes.partitioning.op_reshards import reshard_around
from pyshardy.passes.partitioning.permutation.window import free_dims
from pyshardy.reshard.factors import project_tensors, rebuild
from pyshardy.rules.rule import FactorKind, Rule

_KEEPS_FREE_DIMS = frozenset(("stablehlo.pad", "stablehlo.slice"))


def replicate_factors(op: Op, rule: Rule, meshes: Meshes) -> None:
    """Reshard around an op so that its permutation factors are not sharded."""
    shardings = [get_sharding(value) for value in (*op.operands, *op.results)]
    found = common_mesh(shardings, meshes, ignore_device_order=True)
    if found is None or found[1].is_single_device:
        return
    ref, mesh = found
    kept: set[int] = set()
    if op.name in _KEEPS_FREE_DIMS and shardings[0] is not None:
        kept = {rule.operands[0][dim][0] for dim in free_dims(op, shard_counts(shardings[0], mesh))}
    cleared = set(rule.factors_of(FactorKind.PERMUTATION)) - kept
    states = project_tensors(rule, shardings, mesh)
    targets: list[TensorSharding | None] = []
    for state, mapping, sharding in zip(states, rule.tensors, shardings):
        changed = [factor for factor in sorted(cleared) if factor in state.factors and state.factors[factor].axes]
        for factor in changed:
            state.factors[factor].axes = ()
        targets.append(rebuild(state, mapping, rule, mesh, ref, sharding) if changed else None)
    reshard_around(op, targets)
