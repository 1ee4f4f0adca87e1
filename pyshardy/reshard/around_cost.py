"""What resharding around an op sends."""

from __future__ import annotations

from pyshardy.core.sharding import Meshes, TensorSharding, mesh_of
from pyshardy.reshard.collective_plan import plan_collectives
from pyshardy.reshard.plan import OpInput, plan_op


def reshard_cost(
    before: TensorSharding | None, after: TensorSharding | None, shape: tuple[int, ...], meshes: Meshes
) -> int:
    """How many elements every device sends to bring a tensor from one sharding to another; none for none.

    Raises:
        InvalidShardingError: No collectives do that.

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
    """How many elements every device sends to reshard around an op as `sdy-insert-explicit-reshards` does.

    None if that leaves the op alone.
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
