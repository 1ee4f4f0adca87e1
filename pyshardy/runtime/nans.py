"""Maxima and minima across devices that propagate NaNs, as on one device."""

from __future__ import annotations

from pyshardy.ir.nodes import Op, Value
from pyshardy.transforms.builder import Builder
from pyshardy.transforms.channels import CHANNEL, Channels
from pyshardy.transforms.reduction_kinds import combiners

_EXTREMES = frozenset(("maximum", "minimum"))
_BITS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16}


def propagate_nans(op: Op, builder: Builder, channels: Channels) -> None:
    """Replace a maximum or minimum of numbers across devices by one of integers in the order of the numbers."""
    if all(operand.type.element in _BITS for operand in op.operands):
        name = (combiners(op) or ("",))[0]
        if name in _EXTREMES:
            _reduce_as_integers(op, name, builder, channels)


def _reduce_as_integers(op: Op, name: str, builder: Builder, channels: Channels) -> None:
    for operand, result in zip(op.operands, op.results):
        keys = _keys(operand, name, builder)
        attrs = op.attrs | ({CHANNEL: channels.next()} if CHANNEL in op.attrs else {})
        reduced = builder.op(op.name, [keys], [builder.type(result.type.shape or (), keys.type.element)], attrs, 1)
        scalar = builder.like((), keys.type)
        builder.body(reduced, [scalar, scalar], lambda inner, args: [inner.combine(name, *args)])
        numbers = builder.value("bitcast_convert", [_flipped(reduced.result, builder)], result.type)
        result.replace_uses(numbers)
    op.erase()


def _keys(value: Value, name: str, builder: Builder) -> Value:
    """Integers in the order of the numbers; NaN wins."""
    width = _BITS[value.type.element]
    bits = builder.value("bitcast_convert", [value], builder.type(value.type.shape or (), f"i{width}"))
    last = builder.splat(str(2 ** (width - 1) - 1 if name == "maximum" else -(2 ** (width - 1))), bits.type)
    return builder.select(builder.compare("NE", value, value), last, _flipped(bits, builder))


def _flipped(bits: Value, builder: Builder) -> Value:
    """Integers in the order of the numbers with these bits; applied to such integers, the bits."""
    width = int(bits.type.element[1:])
    flipped = builder.combine("xor", bits, builder.splat(str(2 ** (width - 1) - 1), bits.type))
    return builder.select(builder.compare("LT", bits, builder.splat("0", bits.type)), flipped, bits)
