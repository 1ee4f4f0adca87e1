"""`pyshardy-expand`: rewrites ops into the form that HLO has for them."""

from __future__ import annotations

import math
from typing import Any

from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.constants import is_splat, with_type
from pyshardy.ir.functions import functions, is_declaration
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.op_lists import ops_named
from pyshardy.passes.base import Pass
from pyshardy.transforms.builder import Builder, zero_text
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.xla.simplifications.constants import CONSTANT

_BROADCAST = "stablehlo.broadcast_in_dim"


class Expand(Pass):
    """Rewrite ops into the form that HLO has for them."""

    name = "pyshardy-expand"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        for function in functions(op):
            if not is_declaration(function):
                for found in ops_named(function, tuple(_EXPANSIONS)):
                    _EXPANSIONS[found.name](found, context.attrs)


def _replace(op: Op, value: Value) -> None:
    op.result.replace_uses(value)
    op.erase()


def expand_constant(op: Op, attrs: AttrTable) -> None:
    """A constant of equal elements becomes a broadcast scalar."""
    attr = op.attrs["value"]
    type = op.result.type
    if not is_splat(attr) or math.prod(type.shape or ()) == 1:
        return
    scalar_type = attrs.ranked_type((), type)
    builder = Builder(attrs, op, op.place)
    value = builder.value("constant", (), scalar_type, value=with_type(attr, scalar_type, attrs))
    _replace(op, builder.broadcast(value, type.shape or ()))


def expand_broadcast(op: Op, attrs: AttrTable) -> None:
    """Remove dimensions of size 1 that a broadcast expands, and transpose dimensions that it reorders."""
    value, shape = op.operands[0], op.result.type.shape or ()
    if not value.type.rank:
        return
    dims = tuple(op.attrs["broadcast_dimensions"])
    growing = sorted([dim for size, dim in zip(value.type.shape or (), dims) if size != shape[dim]])
    is_sorted = list(dims) == sorted(dims)
    if is_sorted and not growing:
        return
    builder = Builder(attrs, op, op.place)
    if not is_sorted:
        order = sorted(range(len(dims)), key=dims.__getitem__)
        value = builder.transpose(value, order)
        dims = tuple(sorted(dims))
    if not growing:
        _replace(op, builder.broadcast(value, shape, dims))
        return
    sizes = value.type.shape or ()
    between = list(shape)
    for size, dim in zip(sizes, dims):
        between[dim] = size
    value = builder.broadcast(value, between, dims)
    rest = [dim for dim in range(len(shape)) if dim not in growing]
    value = builder.reshape(value, [shape[dim] for dim in rest])
    _replace(op, builder.broadcast(value, shape, rest))


def expand_select(op: Op, attrs: AttrTable) -> None:
    """Broadcast a scalar predicate."""
    predicate, on_true = op.operands[:2]
    if predicate.type.rank == 0 and on_true.type.rank:
        builder = Builder(attrs, op, op.place)
        op.set_operand(0, builder.broadcast(predicate, on_true.type.shape or ()))


def expand_clamp(op: Op, attrs: AttrTable) -> None:
    """Broadcast scalar bounds."""
    shape = op.result.type.shape or ()
    for index in (0, 2):
        if op.operands[index].type.rank == 0 and shape:
            op.set_operand(index, Builder(attrs, op, op.place).broadcast(op.operands[index], shape))


def expand_convert(op: Op, attrs: AttrTable) -> None:
    """A conversion to a truth value becomes a comparison with zero."""
    operand = op.operands[0]
    if op.result.type.element != "i1" or operand.type.element == "i1":
        return
    builder = Builder(attrs, op, op.place)
    _replace(op, builder.compare("NE", operand, builder.splat(zero_text(operand.type.element), operand.type)))


def expand_add(op: Op, attrs: AttrTable) -> None:
    """A sum of truth values becomes an `or`; other arithmetic ops on them stay as they are."""
    if op.result.type.element == "i1":
        _replace(op, Op("stablehlo.or", op.operands, [op.result.type], op.attrs, 0, op.place).insert_before(op).result)


def expand_all_to_all(op: Op, attrs: AttrTable) -> None:
    """HLO splits and concatenates along one dimension, so the parts are moved to the other dimension by a transpose."""
    split, joined, count = (op.attrs[name].value for name in ("split_dimension", "concat_dimension", "split_count"))
    if split == joined or len(op.operands) != 1:
        return
    operand, type = op.operands[0], op.result.type
    shape = operand.type.shape or ()
    after = Op(
        op.name, [operand], [operand.type], {**op.attrs, "concat_dimension": op.attrs["split_dimension"]}, 0, op.place
    )
    value = after.insert_before(op).result
    builder = Builder(attrs, op, op.place)
    value = builder.reshape(value, (*shape[:split], count, shape[split] // count, *shape[split + 1 :]))
    place = joined + 1 if joined >= split else joined
    order: list[int] = []
    for dim in range(len(shape) + 1):
        if dim != split:
            order += [split, dim] if dim == place else [dim]
    value = builder.transpose(value, order)
    _replace(op, builder.reshape(value, type.shape or ()))


_EXPANSIONS: dict[str, Any] = {
    CONSTANT: expand_constant,
    _BROADCAST: expand_broadcast,
    "stablehlo.add": expand_add,
    "stablehlo.all_to_all": expand_all_to_all,
    "stablehlo.clamp": expand_clamp,
    "stablehlo.convert": expand_convert,
    "stablehlo.select": expand_select,
}
