"""`pyshardy-make-partitionable`: rewrites what the later passes of the partitioner do not support."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pyshardy.core.boxes import local_shape
from pyshardy.core.sharding import TensorSharding, is_equivalent
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.core.text import format_bytes
from pyshardy.ir.dataflow import PROPAGATION_BARRIER, is_data_flow_op
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.dtypes import tensor_bytes
from pyshardy.ir.functions import RULE, SHARDING
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.op_lists import ops_in, ops_named
from pyshardy.ir.shardings import ModuleMeshes, get_sharding, get_shardings, set_sharding
from pyshardy.ir.strings import string_value
from pyshardy.passes.base import Anchor, Pass
from pyshardy.rules.ops import ops_that
from pyshardy.rules.properties import REDUCING_RESHARDS
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.reshards.barriers import remove_barrier
from pyshardy.transforms.reshards.batches import TOP_K, batch_dims, searched_dims, split_batch
from pyshardy.transforms.reshards.causes import CauseNamer
from pyshardy.transforms.reshards.claimed_sums import reshard_complete_results
from pyshardy.transforms.reshards.most_split import most_split
from pyshardy.transforms.reshards.op_reshards import reshard_around
from pyshardy.transforms.reshards.op_rules import is_buffer, is_pointwise, rule_with_dynamic_sizes, takes_shards
from pyshardy.transforms.reshards.other_meshes import go_through_whole, meet_on_one_mesh
from pyshardy.transforms.reshards.single_dims import WITH_SINGLE_DIMS, share_single_dims
from pyshardy.transforms.reshards.survey import distinct_shardings
from pyshardy.transforms.reshards.written_collectives import (
    WRITTEN,
    reshard_if_operand_changed,
    reshard_if_operand_is_whole,
)

_INSPECTION = "InspectSharding"
"""A custom call whose result equals its operand. XLA's partitioner calls back with the sharding."""
_STRUCTURE = ("func.", "sdy.", "builtin.")
_GENERATED_PER_SHARD = ops_that(lambda traits: traits.is_generated_per_shard)
_FOR_XLA = frozenset(("CustomSPMDPartitioning",))
"""Custom calls that only XLA's partitioner can replace; no program can run them."""
_REWRITES: Mapping[str, Callable[[Op, ModuleMeshes], None]] = {
    PROPAGATION_BARRIER: remove_barrier,
    **dict.fromkeys(sorted(WRITTEN), reshard_if_operand_changed),
    **dict.fromkeys(sorted(REDUCING_RESHARDS), reshard_if_operand_is_whole),
}
"""How ops of a name are rewritten."""
_BY_NAME = frozenset((*_REWRITES, "stablehlo.custom_call")) | TOP_K | WITH_SINGLE_DIMS
"""Ops that this pass may rewrite even if they have a rule and all shardings are on one mesh."""


class MakePartitionable(Pass):
    """Remove ops that only propagation needs, and gather operands of ops that cannot run on shards, with a warning.

    Propagation barriers are removed. A collective of the given program becomes a reshard in two cases: if its operand
    has another sharding by now, or if it would sum a tensor that is complete. If a sharding states unreduced axes, but
    the result is complete, the result is resharded to it. A reshard to a mesh with other axes is split in two: a gather
    to the whole tensor, and a slice. A replicated operand on a mesh with other axes is resharded as its user needs it.
    Partial results move to the mesh of the op's operands if only the device order differs. An op without a sharding
    rule gets whole tensors, unless it is elementwise: then all its tensors get the same sharding. A rule that a user
    has registered does not count here. It says how shardings propagate, but not that the op may run on shards. An op
    that states its number of batch dimensions stays sharded along these. An op that only XLA's partitioner can replace
    is an error.

    Attributes:
        replicate: Whether an op that cannot run on shards gets whole tensors. If not, it stays, and
            `sdy-convert-global-to-local` refuses it.
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
            if inner is op or inner.name == "sdy.reshard":
                continue
            if one_mesh and rule is not None and not rule.is_custom and inner.name not in _BY_NAME:
                continue
            rewrite = _REWRITES.get(inner.name)
            if rewrite is not None:
                rewrite(inner, meshes)
            elif not _is_rewritten_call(inner, context) and _has_sharded(inner, meshes):
                self._make_partitionable(inner, context, namer)
        if any(sharding.unreduced for sharding in distinct_shardings(op)):
            for inner in ops_in(op):
                if reshard_complete_results(inner, meshes):
                    namer.name(inner)
        for reshard in ops_named(op, ("sdy.reshard",)):
            go_through_whole(reshard, meshes)

    def _make_partitionable(self, op: Op, context: PassContext, namer: CauseNamer) -> None:
        """Bring the tensors of an op to one mesh, and to shardings with which it can run."""
        _move_partial_results_to_operand_mesh(op, context.meshes)
        is_changed = meet_on_one_mesh(op, context) | share_single_dims(op, context)
        if not _runs_on_shards(op, context):
            self._make_runnable(op, context)
            is_changed = True
        if is_changed:
            namer.name(op)

    def _make_runnable(self, op: Op, context: PassContext) -> None:
        """Reshard around an op that cannot run with its shardings."""
        meshes = context.meshes
        if is_pointwise(context.specs.spec(op)) and _is_on_one_mesh(op, meshes):
            _align(op, meshes)
        elif (dims := batch_dims(op)) and _is_on_one_mesh(op, meshes):
            split_batch(op, dims, meshes)
        elif self.replicate:
            gathered = format_bytes(sum(_replicate(op, meshes)))
            message = "cannot run on shards and runs on whole tensors instead: every device holds"
            target = _target(op)
            name = op.name if target is None else f"{op.name} @{target}"
            context.diagnostics.warn(op, f"'{name}' {message} {gathered} more than its share")


def _target(op: Op) -> str | None:
    return string_value(op.attrs["call_target_name"]) if op.name == "stablehlo.custom_call" else None


def _is_rewritten_call(op: Op, context: PassContext) -> bool:
    """Whether an op is a custom call that needs nothing else; refuses one that only XLA can run.

    Raises:
        PassError: The op calls a custom partitioner.
    """
    target = _target(op)
    _check_not_for_xla(op, target)
    if target == _INSPECTION:
        context.diagnostics.warn(op, f"'{op.name}' of @{_INSPECTION} is removed: only XLA calls it back")
        op.result.replace_uses(op.operands[0])
        op.erase()
        return True
    if takes_shards(op):
        op.remove_attr(SHARDING)  # the op runs on every device
        return True
    return False


def _check_not_for_xla(op: Op, target: str | None) -> None:
    if target in _FOR_XLA:
        if op.enclosing("sdy.manual_computation") is not None:
            raise PassError(
                op,
                f"calls @{target} inside a manual computation, where XLA alone can ask the partitioner"
                '; run the program with engine="xla"',
            )
        raise PassError(op, f"calls @{target}, a custom partitioner in Python; load the function, not its text")


def _move_partial_results_to_operand_mesh(op: Op, meshes: ModuleMeshes) -> None:
    """Move partial results and their all-reduces to the mesh of the operands if only the device order differs."""
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


def _has_sharded(op: Op, meshes: ModuleMeshes) -> bool:
    return any(_is_sharded(found, meshes) for found in get_shardings((*op.operands, *op.results)))


def _is_sharded(sharding: TensorSharding | None, meshes: ModuleMeshes) -> bool:
    return sharding is not None and not sharding.is_fully_replicated and not mesh_of(sharding, meshes).is_single_device


def _runs_on_shards(op: Op, context: PassContext) -> bool:
    if op.name.startswith(_STRUCTURE) or is_data_flow_op(op) or op.is_terminator:
        return True
    if op.name in _GENERATED_PER_SHARD or is_buffer(op):
        return True
    searched, found = searched_dims(op), _shardings_around(op)
    if any(one.dims[dim].axes for dim in searched for one in found if one is not None and one.dims):
        return False  # the rule may let a dimension be sharded along which the largest elements are kept
    rule = op.attrs.get(RULE) or rule_with_dynamic_sizes(context.specs.spec(op))
    return rule is not None and not rule.is_custom and _is_on_one_mesh(op, context.meshes)


def _shardings_around(op: Op) -> list[TensorSharding | None]:
    return get_shardings((*op.operands, *op.results))


def _is_on_one_mesh(op: Op, meshes: ModuleMeshes) -> bool:
    """Whether all sharded operands and results of an op are on meshes with the same axes."""
    found = _shardings_around(op)
    return len({mesh_of(one, meshes).axes for one in found if one is not None and _is_sharded(one, meshes)}) <= 1


def _align(op: Op, meshes: ModuleMeshes) -> None:
    """Reshard all operands and results of an op like the one with the most shards."""
    shardings = [get_sharding(value) for value in (*op.operands, *op.results)]
    common = most_split(shardings, meshes)
    assert common is not None
    reshard_around(op, [None if is_equivalent(common, found) else common for found in shardings])


def _replicate(op: Op, meshes: ModuleMeshes) -> Iterator[int]:
    """Replicate all sharded operands and results of an op; yield the additional bytes per device of each."""
    targets: list[TensorSharding | None] = []
    for value in (*op.operands, *op.results):
        sharding = get_sharding(value)
        if sharding is None or not _is_sharded(sharding, meshes):
            targets.append(None)
        else:
            targets.append(TensorSharding.fully_replicated(sharding.mesh, value.type.rank))
            yield _extra_bytes(value, sharding, meshes)
    reshard_around(op, targets)


def _extra_bytes(value: Value, sharding: TensorSharding, meshes: ModuleMeshes) -> int:
    shape = value.type.shape
    if shape is None or not value.type.is_static:
        return 0
    local = local_shape(sharding, mesh_of(sharding, meshes), shape)
    return tensor_bytes(shape, value.type.element) - tensor_bytes(local, value.type.element)
