"""`pyshardy-make-partitionable`: what the passes of the partitioner cannot take, in ways that they can."""

from __future__ import annotations

from collections.abc import Iterator

from pyshardy.core.boxes import local_shape
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding, is_equivalent, is_unsharded
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.ir.dataflow import is_data_flow_op
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.dtypes import tensor_bytes
from pyshardy.ir.functions import RULE, SHARDING
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.op_lists import ops_in, ops_named
from pyshardy.ir.shardings import Meshes, get_sharding, get_shardings, set_sharding
from pyshardy.ir.strings import string_value
from pyshardy.passes.base import Anchor, Pass
from pyshardy.report.summary import format_bytes
from pyshardy.rules.ops import ops_that
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.reshards.batches import TOP_K, batch_rank, is_top_k, split_batch
from pyshardy.transforms.reshards.causes import CauseNamer
from pyshardy.transforms.reshards.most_split import most_split
from pyshardy.transforms.reshards.op_reshards import reshard_around
from pyshardy.transforms.reshards.op_rules import is_buffer, is_pointwise, rule_with_dynamic_sizes, takes_shards
from pyshardy.transforms.reshards.operand_shardings import make_reshard
from pyshardy.transforms.reshards.other_meshes import go_through_whole, meet_on_one_mesh
from pyshardy.transforms.reshards.single_device import is_on_single_device
from pyshardy.transforms.reshards.single_dims import WITH_SINGLE_DIMS, share_single_dims
from pyshardy.transforms.reshards.survey import distinct_shardings

_INSPECTION = "InspectSharding"
"""A custom call that hands its operand on, and that XLA's partitioner answers by calling back."""
_STRUCTURE = ("func.", "sdy.", "builtin.")
_GENERATED_PER_SHARD = ops_that(lambda traits: traits.is_generated_per_shard)
_FOR_XLA = frozenset(("CustomSPMDPartitioning",))
"""Custom calls that stand for what XLA's partitioner puts in their place: nobody can run them as they are."""
_BY_NAME = frozenset(("sdy.propagation_barrier", "sdy.reshard", "stablehlo.custom_call")) | TOP_K | WITH_SINGLE_DIMS
"""Ops that may need something although they have a rule and all that is sharded is on one mesh: this pass's matter."""


class MakePartitionable(Pass):
    """Rewrite what is left of propagation, and gather for ops that cannot run on shards, with a warning.

    Propagation barriers go; a reshard to a mesh with other axes goes through the whole
    tensor; what all devices hold whole on a mesh with other axes is sharded as the op that takes it needs it; what is
    partial is so on the mesh of what it is made of, where that has another order of devices. An op
    without a sharding rule gets whole tensors, unless it is elementwise: then all its tensors are
    sharded alike. An op with a rule that a user has given counts as one without: the rule says how shardings
    propagate, not that the op computes the same on shards; one that says how many of its dimensions are a batch stays
    sharded along these. An op that XLA's partitioner alone can replace is refused.

    Attributes:
        replicate: Whether to gather for ops that cannot run on shards.
    """

    replicate: bool = True

    name = "pyshardy-make-partitionable"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        namer = CauseNamer(op)
        meshes = context.meshes
        found = [mesh_of(one, meshes) for one in distinct_shardings(op)]
        one_mesh = len({mesh for mesh in found if not mesh.is_single_device and not mesh.is_empty}) <= 1
        for inner in ops_in(op):
            rule = inner.attrs.get(RULE)
            if inner is op or (one_mesh and rule is not None and not rule.is_custom and inner.name not in _BY_NAME):
                continue
            _check_not_for_xla(inner)
            if inner.name == "sdy.propagation_barrier":
                _remove_barrier(inner)
            elif inner.name == "sdy.reshard":
                continue
            elif _target(inner) == _INSPECTION:
                context.diagnostics.warn(inner, f"'{inner.name}' of @{_INSPECTION} goes: only XLA calls it back")
                inner.result.replace_uses(inner.operands[0])
                inner.erase()
            elif takes_shards(inner):
                inner.remove_attr(SHARDING)  # of no device in particular
            elif _has_sharded(inner, meshes):
                _move_partial_results_to_operand_mesh(inner, meshes)
                is_changed = meet_on_one_mesh(inner, context) | share_single_dims(inner, context)
                if not _runs_on_shards(inner, context):
                    self._make_runnable(inner, context)
                    is_changed = True
                if is_changed:
                    namer.name(inner)
        for reshard in ops_named(op, ("sdy.reshard",)):
            go_through_whole(reshard, meshes)
            _keep_whole_at_device(reshard, meshes)

    def _make_runnable(self, op: Op, context: PassContext) -> None:
        """Let an op that cannot run as it is sharded do so."""
        meshes = context.meshes
        if is_pointwise(context.specs.spec(op)) and _is_on_one_mesh(op, meshes):
            _align(op, meshes)
        elif (rank := batch_rank(op)) and _is_on_one_mesh(op, meshes):
            split_batch(op, rank, meshes)
        elif self.replicate:
            gathered = format_bytes(sum(_replicate(op, meshes)))
            message = "cannot run on shards and runs on whole tensors instead: every device holds"
            context.diagnostics.warn(op, f"'{op.name}' {message} {gathered} more than its share")


def _target(op: Op) -> str | None:
    return string_value(op.attrs["call_target_name"]) if op.name == "stablehlo.custom_call" else None


def _check_not_for_xla(op: Op) -> None:
    target = _target(op)
    if target in _FOR_XLA:
        if op.enclosing("sdy.manual_computation") is not None:
            raise PassError(
                op,
                f"calls @{target} inside a manual computation, where XLA alone can ask the partitioner"
                '; run the program with engine="xla"',
            )
        raise PassError(op, f"calls @{target}, which stands for a partitioner of the user's; load the function itself")


def _remove_barrier(op: Op) -> None:
    """Use what is behind a barrier; reshards for calls and data flow are planned with it, all others without."""
    value, wanted = op.operands[0], get_sharding(op.result)
    sharding = get_sharding(value)
    same = is_unsharded(sharding) if wanted is None else is_equivalent(wanted, sharding)
    if not same:
        target = wanted or TensorSharding.fully_replicated(_mesh_of(sharding), value.type.rank)
        reshard = make_reshard(value, target).insert_before(op)
        op.result.replace_uses(reshard.result, only=lambda user, _: _is_border(user))
        if not reshard.has_uses():
            reshard.erase()
    op.result.replace_uses(value)
    op.erase()


def _mesh_of(sharding: TensorSharding | None) -> str | Mesh:
    assert sharding is not None
    return sharding.mesh


def _is_border(op: Op) -> bool:
    return op.is_terminator or op.name == "func.call" or is_data_flow_op(op)


def _keep_whole_at_device(reshard: Op, meshes: Meshes) -> None:
    """Let a reshard to or from a single device not be joined with the one that gathers for it, or slices behind it."""
    value, target = reshard.operands[0], reshard.attrs["sharding"]
    if (
        is_on_single_device(target, meshes)
        and value.defining_op is not None
        and value.defining_op.name == "sdy.reshard"
    ):
        same = Op("stablehlo.reshape", [value], [value.type], {}, location=reshard.location).insert_before(reshard)
        reshard.set_operand(0, same.result)
    elif is_on_single_device(get_sharding(value), meshes):
        same = Op("stablehlo.reshape", [reshard.result], [value.type], {}, location=reshard.location)
        same.insert_after(reshard)
        reshard.result.replace_other_uses(same)


def _move_partial_results_to_operand_mesh(op: Op, meshes: Meshes) -> None:
    """Let partial results, and what completes them, be on the mesh of the sharded operands, not in another order."""
    refs = [found.mesh for found in map(get_sharding, op.operands) if found is not None and _is_sharded(found, meshes)]
    for result in op.results:
        sharding = get_sharding(result)
        if not refs or sharding is None or not sharding.unreduced or not sharding.is_fully_replicated:
            continue
        here, there = mesh_of(sharding, meshes), mesh_of(sharding.with_mesh(refs[0]), meshes)
        if here is there or here.axes != there.axes:
            continue
        for user in result.users():
            if user.name == "sdy.all_reduce":
                set_sharding(result, sharding.with_mesh(refs[0]))
                user.set_attr("out_sharding", user.attrs["out_sharding"].with_mesh(refs[0]))


def _has_sharded(op: Op, meshes: Meshes) -> bool:
    return any(_is_sharded(found, meshes) for found in get_shardings((*op.operands, *op.results)))


def _is_sharded(sharding: TensorSharding | None, meshes: Meshes) -> bool:
    return sharding is not None and not sharding.is_fully_replicated and not mesh_of(sharding, meshes).is_single_device


def _runs_on_shards(op: Op, context: PassContext) -> bool:
    if op.name.startswith(_STRUCTURE) or is_data_flow_op(op) or op.is_terminator:
        return True
    if op.name in _GENERATED_PER_SHARD or is_buffer(op):
        return True
    if is_top_k(op) and any(found and found.dims and found.dims[-1].axes for found in _shardings_around(op)):
        return False  # the rule lets the last dimension be sharded where all of it is kept
    rule = op.attrs.get(RULE) or rule_with_dynamic_sizes(context.specs.spec(op))
    return rule is not None and not rule.is_custom and _is_on_one_mesh(op, context.meshes)


def _shardings_around(op: Op) -> list[TensorSharding | None]:
    return get_shardings((*op.operands, *op.results))


def _is_on_one_mesh(op: Op, meshes: Meshes) -> bool:
    """Whether all that is sharded around an op is so along the axes of one mesh."""
    found = _shardings_around(op)
    return len({mesh_of(one, meshes).axes for one in found if one is not None and _is_sharded(one, meshes)}) <= 1


def _align(op: Op, meshes: Meshes) -> None:
    """Reshard all tensors around an op like the one that is split most."""
    shardings = [get_sharding(value) for value in (*op.operands, *op.results)]
    common = most_split(shardings, meshes)
    assert common is not None
    reshard_around(op, [None if is_equivalent(common, found) else common for found in shardings])


def _replicate(op: Op, meshes: Meshes) -> Iterator[int]:
    """Reshard all that is sharded around an op; the bytes that every device holds more because of each tensor."""
    targets: list[TensorSharding | None] = []
    for value in (*op.operands, *op.results):
        sharding = get_sharding(value)
        if sharding is None or not _is_sharded(sharding, meshes):
            targets.append(None)
        else:
            targets.append(TensorSharding.fully_replicated(sharding.mesh, value.type.rank))
            yield _extra_bytes(value, sharding, meshes)
    reshard_around(op, targets)


def _extra_bytes(value: Value, sharding: TensorSharding, meshes: Meshes) -> int:
    shape = value.type.shape
    if shape is None or not value.type.is_static:
        return 0
    local = local_shape(sharding, mesh_of(sharding, meshes), shape)
    return tensor_bytes(shape, value.type.element) - tensor_bytes(local, value.type.element)
