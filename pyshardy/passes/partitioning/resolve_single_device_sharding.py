"""`sdy-resolve-single-device-sharding`: puts ops on a single device under a condition.

Source: docs/semantics/export.md#sdy-resolve-single-device-sharding
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxlib.mlir import ir

from pyshardy.core.axes import AxisRef
from pyshardy.core.sharding import ReductionKind, TensorSharding
from pyshardy.core.sharding_on_mesh import Meshes, mesh_of
from pyshardy.core.text import format_symbol
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import SHARDING
from pyshardy.ir.nodes import Block, Op, Value, ValueType, walk_post_order
from pyshardy.ir.shardings import get_sharding
from pyshardy.passes.base import Anchor, Pass
from pyshardy.transforms.builder import zero_text
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.reshards.operand_shardings import make_all_reduce
from pyshardy.transforms.reshards.single_device import (
    device_without_results,
    global_mesh,
    is_on_single_device,
    single_device_of,
)
from pyshardy.transforms.reshards.survey import distinct_shardings

_RESHARD = "sdy.reshard"
_NUMBER = "tensor<ui32>"
_LAST_DEVICE = 2**32 - 1


class ResolveSingleDeviceSharding(Pass):
    """Run every op that is on a single device only there, and send its results from there to all devices.

    On the other devices the results are zeros, so the sum over all devices is what the single device has computed.

    Attributes:
        replica_count: The number of replicas. If there are several, the replica id identifies a device.
        partition_count: The number of partitions; only one of the two counts can exceed 1.
    """

    replica_count: int = 1
    partition_count: int = 1

    name = "sdy-resolve-single-device-sharding"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        meshes = context.meshes
        name = global_mesh(meshes)
        if name is None or not any(is_on_single_device(one, meshes) for one in distinct_shardings(op)):
            return
        resolver = _Resolver(self, context.attrs, meshes, name)
        for inner in [inner for inner in walk_post_order(op) if _is_on_one_device(inner, meshes)]:
            resolver.resolve(inner)


def _is_on_one_device(op: Op, meshes: Meshes) -> bool:
    if op.name.startswith("sdy."):
        return False
    if not op.results:
        return device_without_results(op, meshes) is not None
    results = [result for result in op.results if result.type.is_ranked_tensor] or op.results  # else tokens
    return any(is_on_single_device(get_sharding(result), meshes) for result in results)


@dataclass(frozen=True, slots=True)
class _Resolver:
    """Resolves ops one by one.

    Attributes:
        options: The pass.
        attrs: The attributes and types of the context.
        meshes: The meshes of the module.
        mesh: The name of the mesh whose devices get the results.
    """

    options: ResolveSingleDeviceSharding
    attrs: AttrTable
    meshes: Meshes
    mesh: str

    def resolve(self, op: Op) -> None:
        """Put a condition around an op, and all-reduce its results."""
        condition = self._condition(op, self._device_of(op))
        branches = Op(
            "stablehlo.if", [condition], [result.type for result in op.results], {}, 2, op.location
        ).insert_before(op)
        reshards = {value.defining_op: None for value in op.operands if self._is_reshard_to_device(value)}
        self._fill_true(branches.regions[0].add_block(), op)
        self._fill_false(branches.regions[1].add_block(), op)
        anchor = op
        for old, new in zip(op.results, branches.results):
            if not new.type.is_ranked_tensor:
                old.replace_uses(new)
                continue
            anchor = self._broadcast(new).insert_after(anchor)
            _use_instead(old, anchor)
        op.erase()
        for reshard in reshards:
            if reshard is not None and not reshard.has_uses():
                reshard.erase()

    def _device_of(self, op: Op) -> int:
        sharding = single_device_of(op, self.meshes) or device_without_results(op, self.meshes)
        assert sharding is not None
        for index, result in enumerate(op.results):
            other = get_sharding(result)
            if other is None or is_on_single_device(other, self.meshes):
                continue
            if not other.is_fully_replicated:
                raise PassError(op, f"is on a single device but has result {index} sharded over several")
        ids = mesh_of(sharding, self.meshes).device_ids
        assert ids is not None
        count = self.meshes[self.mesh].size
        if ids[0] >= count:
            mesh = format_symbol(self.mesh)
            raise PassError(op, f"is on device {ids[0]}, but {mesh} has only {count} devices, counted from 0")
        if ids[0] > _LAST_DEVICE:
            raise PassError(op, f"is on device {ids[0]}, but the numbers of devices have 32 bits")
        return ids[0]

    def _condition(self, op: Op, device: int) -> Value:
        """A value that is true on the given device; it is computed before `op`."""
        options = self.options
        if options.replica_count > 1 and options.partition_count > 1:
            raise PassError(op, "is on a single device, which needs a single replica or a single partition")
        number = self.attrs.type(ir.Type.parse(_NUMBER))
        which = "replica_id" if options.replica_count > 1 else "partition_id"
        ours = Op(f"stablehlo.{which}", (), [number], location=op.place).insert_before(op)
        value = {"value": self.attrs.parse(f"dense<{device}> : {_NUMBER}")}
        wanted = Op("stablehlo.constant", (), [number], value, location=op.place).insert_before(op)
        direction = {"comparison_direction": self.attrs.parse("#stablehlo<comparison_direction EQ>")}
        flag = self.attrs.type(ir.Type.parse("tensor<i1>"))
        operands = [ours.result, wanted.result]
        return Op("stablehlo.compare", operands, [flag], direction, location=op.place).insert_before(op).result

    def _is_reshard_to_device(self, value: Value) -> bool:
        op = value.defining_op
        return op is not None and op.name == _RESHARD and is_on_single_device(op.attrs["sharding"], self.meshes)

    def _fill_true(self, block: Block, op: Op) -> None:
        copy = block.append(op.clone())
        copy.remove_attr(SHARDING)
        for index, value in enumerate(copy.operands):
            reshard = value.defining_op
            if reshard is not None and self._is_reshard_to_device(value):
                copy.set_operand(index, reshard.operands[0])
        block.append(Op("stablehlo.return", copy.results, location=op.place))

    def _fill_false(self, block: Block, op: Op) -> None:
        made = []
        for result in op.results:
            type = result.type
            if type.is_ranked_tensor:
                value = {"value": self.attrs.parse(f"dense<{_zero(op, type)}> : {type}")}
                new = Op("stablehlo.constant", (), [type], value, location=op.place)
            else:
                new = Op("stablehlo.create_token", (), [type], location=op.place)
            made.append(block.append(new).result)
        block.append(Op("stablehlo.return", made, location=op.place))

    def _broadcast(self, value: Value) -> Op:
        axes = tuple(AxisRef(name) for name, _ in self.meshes[self.mesh].axes)
        sharding = TensorSharding.fully_replicated(self.mesh, value.type.rank)
        return make_all_reduce(value, axes, ReductionKind.SUM, sharding)


def _zero(op: Op, type: ValueType) -> str:
    if not type.is_static:
        raise PassError(op, "is on a single device and has a result with a dynamic shape")
    return zero_text(type.element)


def _use_instead(value: Value, reduced: Op) -> None:
    """Replace a value, and reshards of it to the same sharding, by the result of an all-reduce."""
    for user in value.users():
        if user.name == _RESHARD and user.attrs["sharding"] is reduced.attrs["out_sharding"]:
            user.result.replace_uses(reduced.result)
            user.erase()
    value.replace_uses(reduced.result)
