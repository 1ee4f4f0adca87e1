"""Padding of reshapes, and of all ops without special needs.

Source: docs/semantics/partitioner.md#padding-of-ops
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir

from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.shardings import get_sharding
from pyshardy.reshard.reshape_groups import GroupKind
from pyshardy.reshard.reshape_halo import Reshape
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.padding.padder import Padder, shape_of


def pad_any(op: Op, padder: Padder) -> None:
    """Any op: pad its operands and results; padding stays padding."""
    padded = [value for value in op.operands if value in padder.originals]
    unknown = [result for result in op.results if padded and _follows(result, padded, padder)]
    shapes = inferred_shapes(op, padder.context) if unknown else None
    for result in op.results:
        padder.pad_result(result)
        if shapes is not None and result in unknown and result.type.rank == len(shapes[result.index]):
            padder.set_shape(result, [max(*sizes) for sizes in zip(shapes[result.index], shape_of(result))])


def _follows(result: Value, padded: Sequence[Value], padder: Padder) -> bool:
    """Whether a result's padding cannot be told from its sharding: it has none, or another one than the operands."""
    if not result.type.is_ranked_tensor or get_sharding(result) is None:
        return result.type.is_ranked_tensor
    shape, needed = padder.original_shape(result), padder.padded_shape(result)
    return any(padder.original_shape(value) == shape and shape_of(value) != needed for value in padded)


def pad_broadcast(op: Op, padder: Padder) -> None:
    """`broadcast_in_dim`: a dimension of size 1 that it expands cannot be padded."""
    value = op.operands[0]
    before, after = padder.original_shape(value), padder.original_shape(op.result)
    for dim, target in enumerate(op.attrs["broadcast_dimensions"]):
        if before[dim] != after[target] and dim in padder.padded_dims(value):
            raise PassError(
                op, f"expands dimension {dim}, which is sharded; try -sdy-resolve-permutation-factors first"
            )
    pad_any(op, padder)


def pad_reshape(op: Op, padder: Padder) -> None:
    """`reshape`: allowed if the groups of dimensions that are not divisible keep their shards."""
    value, result = op.operands[0], op.result
    sharding, out_sharding = get_sharding(value), get_sharding(result)
    padder.pad_result(result)
    if value not in padder.originals and result not in padder.originals:
        return
    if sharding is None or out_sharding is None:
        raise PassError(op, "is padded on one side and has no sharding on the other")
    shapes = padder.original_shape(value), padder.original_shape(result)
    reshape = Reshape(*shapes, sharding, out_sharding, mesh_of(sharding, padder.meshes))
    uneven = [group for group in reshape.groups if not reshape.is_divisible(group)]
    if all(group.kind is GroupKind.PASS_THROUGH for group in uneven) or reshape.is_equivalent_with_padding:
        return
    raise PassError(
        op,
        f"from {shapes[0]} to {shapes[1]} changes dimensions that are not divisible by their shardings; try "
        "-sdy-resolve-permutation-factors first",
    )


Shapes = list[tuple[int, ...]]


def inferred_shapes(op: Op, context: PassContext) -> Shapes | None:
    """The result shapes for the current operands; None if MLIR cannot infer them."""
    if op.regions or not op.name.startswith("stablehlo."):
        return None
    try:
        with ir.Location.unknown():
            place = ir.InsertionPoint(ir.Module.create().body)
            stand_ins = [
                ir.Operation.create("builtin.unrealized_conversion_cast", [value.type.mlir], ip=place).result
                for value in op.operands
            ]
            attrs = context.attrs.encode_attrs(op.name, op.attrs)
            made = ir.Operation.create(op.name, None, stand_ins, attrs, ip=place, infer_type=True)
            return [context.attrs.type(type).shape or () for type in made.results.types]
    except (ir.MLIRError, ValueError, TypeError):
        return None
