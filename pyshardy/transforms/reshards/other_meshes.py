"""Values on meshes with other axes. A replicated value is replicated on every mesh of the same devices."""

from __future__ import annotations

from pyshardy.core.sharding import TensorSharding, is_unsharded
from pyshardy.core.sharding_on_mesh import common_mesh, mesh_of
from pyshardy.ir.functions import RULE
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import ModuleMeshes, get_sharding, get_shardings, set_sharding
from pyshardy.reshard.plan import OpInput, plan_op
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.reshards.op_reshards import complete_partial_results, reshard_around
from pyshardy.transforms.reshards.op_rules import rule_with_dynamic_sizes
from pyshardy.transforms.reshards.operand_shardings import make_reshard


def is_whole(sharding: TensorSharding | None, meshes: ModuleMeshes) -> bool:
    """Whether a value is replicated on all devices of the mesh."""
    return is_unsharded(sharding) and (sharding is None or not mesh_of(sharding, meshes).is_single_device)


def meet_on_one_mesh(op: Op, context: PassContext) -> bool:
    """Reshard around an op with tensors replicated on one mesh and sharded on another; return whether it is such an op.

    `sdy-insert-explicit-reshards` leaves such an op alone, as the reference does.
    """
    meshes = context.meshes
    values = (*op.operands, *op.results)
    shardings = tuple(get_shardings(values))
    if not op.operands or not op.results or common_mesh(shardings, meshes, ignore_device_order=True) is not None:
        return False
    sharded = tuple(None if is_whole(one, meshes) else one for one in shardings)
    rule = op.attrs.get(RULE) or rule_with_dynamic_sizes(context.specs.spec(op))
    if rule is None or rule.is_custom or common_mesh(sharded, meshes, ignore_device_order=True) is None:
        return False
    plan = plan_op(OpInput(op.name, rule, tuple(value.type.shape for value in values), sharded, True), meshes)
    if plan is None or plan.is_empty:
        return False
    reshard_around(op, plan.targets)
    for result in op.results:
        if is_whole(get_sharding(result), meshes):
            set_sharding(result, TensorSharding.fully_replicated(plan.mesh, result.type.rank))
    complete_partial_results(op, plan, meshes, mark=True)
    return True


def go_through_whole(reshard: Op, meshes: ModuleMeshes) -> None:
    """Split a reshard to a mesh with other axes: gather on the first mesh, then slice on the second.

    Collectives of the dialect start and end on one mesh. So an op without a sharding stands between the two: a reshape
    to the same shape, which costs nothing. Its result is whole on every mesh.
    """
    value, target = reshard.operands[0], reshard.attrs["sharding"]
    sharding = get_sharding(value)
    if sharding is None or mesh_of(sharding, meshes).axes == mesh_of(target, meshes).axes:
        return
    if any(mesh_of(one, meshes).is_single_device or one.unreduced for one in (sharding, target)):
        return
    if target.is_fully_replicated:
        reshard.set_attr("sharding", TensorSharding.fully_replicated(sharding.mesh, value.type.rank))
        return
    if not sharding.is_fully_replicated:
        whole = make_reshard(value, TensorSharding.fully_replicated(sharding.mesh, value.type.rank))
        whole.insert_before(reshard).location = reshard.location
        value = whole.result
    same = Op("stablehlo.reshape", [value], [value.type], {}, location=reshard.place).insert_before(reshard)
    reshard.set_operand(0, same.result)
