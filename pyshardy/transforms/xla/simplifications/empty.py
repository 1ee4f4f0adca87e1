"""Tensors without elements: XLA replaces them by constants."""

from __future__ import annotations

from collections.abc import Iterator

from jaxlib.mlir import ir

from pyshardy.ir.nodes import Op, Value, ValueType
from pyshardy.ir.op_lists import ops_in
from pyshardy.transforms.xla.simplifier import Simplifier


def replace_empty(to: Simplifier) -> None:
    """Replace the empty tensors of all StableHLO ops in a function."""
    if any(_is_empty(type) for type in to.attrs.known_types()):
        for op in ops_in(to.function):
            if op.name.startswith("stablehlo.") and op.name != "stablehlo.constant":
                _replace(op, to)


def _replace(op: Op, to: Simplifier) -> None:
    """Replace the empty operands and results of an op by constants, and a reduction of nothing by its initial value.

    The op itself is then dead, unless another result is used.
    """
    if op.name == "stablehlo.reduce" and any(_is_empty(value.type) for value in op.operands[: len(op.results)]):
        for result, start in zip(op.results, op.operands[len(op.results) :]):
            found = start
            if result.type is not start.type:
                none = to.attrs.i64_array(())
                found = to.make(op, "stablehlo.broadcast_in_dim", [start], result.type, broadcast_dimensions=none)
            result.replace_uses(found)
        return
    for index, value in _empty(op.operands):
        maker = value.defining_op
        if maker is None or maker.name != "stablehlo.constant":
            op.set_operand(index, _constant(op, value.type, to))
    for _, result in _empty(op.results):
        result.replace_uses(_constant(op, result.type, to))


def _empty(values: tuple[Value, ...]) -> Iterator[tuple[int, Value]]:
    return ((index, value) for index, value in enumerate(values) if _is_empty(value.type))


def _is_empty(type: ValueType) -> bool:
    return type.is_static and 0 in (type.shape or ())


def _constant(op: Op, type: ValueType, to: Simplifier) -> Value:
    return to.constant_with(op, ir.Attribute.parse(f"dense<> : {type}"), type)
