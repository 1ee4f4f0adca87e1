"""`pyshardy-replicate-unsupported`: ops that nobody knows how to run on shards run on whole tensors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyshardy.core.boxes import local_shape
from pyshardy.core.sharding import TensorSharding, mesh_of
from pyshardy.ir.dataflow import is_data_flow_op
from pyshardy.ir.dtypes import tensor_bytes
from pyshardy.ir.nodes import Op, Value, walk
from pyshardy.ir.program import RULE
from pyshardy.ir.shardings import Meshes, get_sharding, set_sharding
from pyshardy.passes.base import Anchor, Pass, PassContext
from pyshardy.passes.partitioning.causes import CauseNamer
from pyshardy.passes.partitioning.meeting import make_reshard
from pyshardy.passes.partitioning.op_reshards import insert_after
from pyshardy.report.summary import format_bytes
from pyshardy.rules.table import rule_of

_STRUCTURE = ("func.", "sdy.", "builtin.")


@dataclass(frozen=True)
class ReplicateUnsupported(Pass):
    """Gather the operands of every op without a sharding rule, and shard its results afterwards, with a warning.

    An op with a rule that a user has given counts as one without: the rule says how shardings propagate, not that the
    op computes the same on shards.
    """

    name = "pyshardy-replicate-unsupported"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        namer = CauseNamer(walk(op))
        meshes = context.meshes
        for inner in list(walk(op)):
            if inner is not op and _has_sharded(inner, meshes) and not _runs_on_shards(inner, context):
                gathered = sum(_replicate(inner, meshes))
                namer.name(inner)
                context.diagnostics.warn(
                    inner,
                    f"'{inner.name}' cannot run on shards and runs on whole tensors instead: "
                    f"every device holds {format_bytes(gathered)} more than its share",
                )


def _has_sharded(op: Op, meshes: Meshes) -> bool:
    return any(_is_sharded(get_sharding(value), meshes) for value in (*op.operands, *op.results))


def _is_sharded(sharding: TensorSharding | None, meshes: Meshes) -> bool:
    return sharding is not None and not sharding.is_fully_replicated and not mesh_of(sharding, meshes).is_single_device


def _runs_on_shards(op: Op, context: PassContext) -> bool:
    if op.name.startswith(_STRUCTURE) or is_data_flow_op(op) or op.is_terminator:
        return True
    if not op.operands:
        return True
    rule = op.attrs.get(RULE) or rule_of(context.specs.spec(op))
    return rule is not None and not rule.is_custom


def _replicate(op: Op, meshes: Meshes) -> Iterator[int]:
    """Reshard all that is sharded around an op; the bytes that every device holds more because of each tensor."""
    for index, value in enumerate(op.operands):
        sharding = get_sharding(value)
        if sharding is not None and _is_sharded(sharding, meshes):
            op.set_operand(index, make_reshard(value, _replicated(sharding, value)).insert_before(op).result)
            yield _extra_bytes(value, sharding, meshes)
    anchor = op
    for result in op.results:
        sharding = get_sharding(result)
        if sharding is not None and _is_sharded(sharding, meshes):
            set_sharding(result, _replicated(sharding, result))
            anchor = insert_after(make_reshard(result, sharding), anchor, result)
            yield _extra_bytes(result, sharding, meshes)


def _replicated(sharding: TensorSharding, value: Value) -> TensorSharding:
    return TensorSharding.replicated_like(sharding.mesh, value.type.rank)


def _extra_bytes(value: Value, sharding: TensorSharding, meshes: Meshes) -> int:
    shape = value.type.shape
    if shape is None or not value.type.is_static:
        return 0
    local = local_shape(sharding, mesh_of(sharding, meshes), shape)
    return tensor_bytes(shape, value.type.element) - tensor_bytes(local, value.type.element)
