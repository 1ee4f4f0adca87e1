"""Replication along factors along which an op cannot run on shards.

Source: docs/semantics/partitioner.md#replication
"""

from __future__ import annotations

from collections.abc import Collection

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import subtract_axes
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import Meshes, common_mesh, mesh_of, shard_counts
from pyshardy.ir.constants import constant_integer
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import get_sharding, set_sharding
from pyshardy.reshard.factors import project_tensors, rebuild
from pyshardy.rules.ops import ops_that
from pyshardy.rules.rule import FactorKind, Rule
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.exchanges.edges import free_dims
from pyshardy.transforms.reshards.op_reshards import reshard_around

_WINDOWS = ops_that(lambda traits: traits.exchange == "window:resolve_window")
_UPDATE = "stablehlo.dynamic_update_slice"


def replicate_factors(op: Op, rule: Rule, cleared: Collection[int], meshes: Meshes) -> None:
    """Reshard around an op so that some factors are not sharded, except where shards need no data from each other."""
    shardings = [get_sharding(value) for value in (*op.operands, *op.results)]
    on = common_mesh(shardings, meshes, ignore_device_order=True)
    if on is None or on[1].is_single_device:
        return
    ref, mesh = on
    if mesh.device_ids is None:  # the last mesh name counts
        ref = [sharding.mesh for sharding in shardings if sharding and mesh_of(sharding, meshes) is mesh][-1]
    cleared = set(cleared) - _kept_factors(op, rule, meshes)
    states = project_tensors(rule, shardings, mesh)
    targets: list[TensorSharding | None] = []
    reduced: dict[int, Axes] = {}
    for state, mapping, sharding in zip(states, rule.tensors, shardings):
        own = {factor: state.factors[factor] for factor in sorted(cleared) if factor in state.factors}
        changed = [factor for factor, found in own.items() if found.axes or found.overflow]
        for factor in changed:
            if rule.kinds[factor] is FactorKind.REDUCTION:
                reduced[factor] = own[factor].axes + own[factor].overflow
            own[factor].axes = own[factor].overflow = ()
        targets.append(rebuild(state, mapping, rule, mesh, ref, sharding) if changed else None)
    if any(targets):
        targets = [target or _moved(sharding, ref) for target, sharding in zip(targets, shardings)]
    if reduced:
        _complete(op, sum(reduced.values(), ()), mesh)
        after = get_sharding(op.results[0])
        if targets[-1] is not None and after is not None:
            targets[-1] = targets[-1].with_unreduced(after.unreduced)
    reshard_around(op, targets)


def _moved(sharding: TensorSharding | None, ref: str | Mesh) -> TensorSharding | None:
    """The sharding on the mesh on which an op runs; None if it is on that mesh already, or replicated everywhere."""
    if sharding is None or not sharding.rank or sharding.mesh == ref:
        return None
    return sharding.with_mesh(ref)


def expanded_factors(op: Op, rule: Rule, context: PassContext) -> set[int]:
    """The factors of dimensions of size 1 that a broadcast expands. Every device needs the only element."""
    before, after = (value.type.shape or () for value in (op.operands[0], op.result))
    pairs = enumerate(op.attrs["broadcast_dimensions"])
    return {factor for dim, target in pairs if before[dim] != after[target] for factor in rule.operands[0][dim]}


def _complete(op: Op, axes: Axes, mesh: Mesh) -> None:
    """Remove axes along which the results of an op are no longer partial, and the all-reduces over them."""
    for result in op.results:
        sharding = get_sharding(result)
        if sharding is not None and sharding.unreduced:
            set_sharding(result, sharding.with_unreduced(subtract_axes(sharding.unreduced, axes, mesh)))
        for user in result.users():
            if user.name == "sdy.all_reduce":
                user.set_attr("reduction_axes", subtract_axes(user.attrs["reduction_axes"], axes, mesh))
                if not user.attrs["reduction_axes"]:
                    user.result.replace_uses(result)
                    user.erase()


def _kept_factors(op: Op, rule: Rule, meshes: Meshes) -> set[int]:
    """The factors of dimensions along which no shard needs data from the others."""
    if op.name not in _WINDOWS and op.name != _UPDATE:
        return set()
    sharding, rank = get_sharding(op.operands[0]), op.operands[0].type.rank
    counts = (1,) * rank if sharding is None else shard_counts(sharding, mesh_of(sharding, meshes))
    if op.name in _WINDOWS:
        return {rule.operands[0][dim][0] for dim in free_dims(op, counts)}
    dims = [dim for dim, count in enumerate(counts) if _is_in_one_shard(op, dim, count)]
    return {tensor[dim][0] for tensor in (rule.operands[0], *rule.results) for dim in dims}


def _is_in_one_shard(op: Op, dim: int, count: int) -> bool:
    """Whether an update of a part of a dimension is inside one shard."""
    size, part = ((value.type.shape or ())[dim] for value in op.operands[:2])
    if part == 1 or count == 1:
        return True
    start = constant_integer(op.operands[dim + 2])
    if start is None or part == 0:
        return False
    start, shard = min(max(start, 0), size - part), -(-size // count)
    return start // shard == (start + part - 1) // shard
