"""The traffic of resharding around an op."""

from __future__ import annotations

from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import Meshes, mesh_of
from pyshardy.reshard.collective_plan import plan_collectives
from pyshardy.reshard.plan import OpInput, plan_op


def reshard_cost(
    before: TensorSharding | None, after: TensorSharding | None, shape: tuple[int, ...], meshes: Meshes
) -> int:
    """The number of elements that every device sends to reshard a tensor; 0 if no step is needed.

    Raises:
        InvalidShardingError: No collectives reach the new sharding.

    >>> from pyshardy.core.mesh import Mesh
    >>> from pyshardy.core.notation import parse_sharding
    >>> split, whole = parse_sharding('<@m, [{"a"}]>'), parse_sharding("<@m, [{}]>")
    >>> reshard_cost(split, whole, (32,), {"m": Mesh([("a", 8)])})
    28
    """
    if after is None or before == after:
        return 0
    mesh = mesh_of(after, meshes)
    steps = plan_collectives(before, after, None if before is None else mesh_of(before, meshes), mesh, shape)
    return sum(step.sent_bytes_per_device(1, shape, mesh) for step in steps or ())


def cost_around(op: OpInput, meshes: Meshes) -> int | None:
    """The number of elements that every device sends in the reshards of `sdy-insert-explicit-reshards` around an op.

    None if that pass leaves the op alone.
    """
    plan = plan_op(op, meshes)
    if plan is None or not any(plan.targets):
        return None
    results = len(op.rule.operands)
    total = 0
    for index, (target, sharding, shape) in enumerate(zip(plan.targets, op.shardings, op.shapes)):
        if target is not None:
            old = sharding or TensorSharding.fully_replicated(target.mesh, target.rank)
            pair = (sharding, target) if index < results else (target, old)
            total += reshard_cost(*pair, shape or (), meshes)
    return total
