"""The result types that MLIR infers for an op from its operands."""

from __future__ import annotations

from jaxlib.mlir import ir

from pyshardy.ir.nodes import Op
from pyshardy.transforms.context import PassContext

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
