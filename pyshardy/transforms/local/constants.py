"""Constants and iota.

Source: docs/semantics/partitioner.md#constants-and-iota
"""

from __future__ import annotations

from pyshardy.ir.constants import is_splat, with_type
from pyshardy.ir.nodes import Op
from pyshardy.transforms.local.collectives import keep_on_leaders, slice_along
from pyshardy.transforms.local.localizer import Localizer

_MANTISSAS = {"f16": 11, "bf16": 8, "f8": 2, "f32": 24}
"""Bits of precision of floating-point types; all other types hold every index exactly."""


def localize_constant(op: Op, local: Localizer) -> None:
    """A smaller constant if all elements are equal, otherwise a slice; a partial constant is on one device only."""
    sharding = local.sharding(op.result)
    is_unsharded = sharding is None or (sharding.is_fully_replicated and not sharding.unreduced)
    if is_unsharded and op.name == "stablehlo.constant":
        local.keep(op)
        return
    builder = local.builder(op)
    value, type = op.attrs["value"], local.local_type_of(op, op.result)
    is_cut = type is not op.result.type and is_splat(value)
    if is_cut:
        value = with_type(value, type, local.attrs)
    made = builder.value("constant", (), type if is_cut else op.result.type, value=value)
    if sharding is not None and type is not made.type:
        made = slice_along(builder, made, sharding.dim_axes, local.mesh(sharding), type.shape or ())
    if sharding is not None and sharding.unreduced:
        made = keep_on_leaders(op, builder, made, sharding.unreduced, sharding, local)
    local.replace(op, [made])


def localize_get_dimension_size(op: Op, local: Localizer) -> None:
    """The size of the global dimension, a constant unless the dimension is dynamic."""
    operand, dim = op.operands[0], op.attrs["dimension"].value
    count = local.shard_counts(operand)[dim]
    if count == 1:
        local.keep(op)
        return
    builder, size = local.builder(op), local.global_shape(operand)[dim]
    if size >= 0:
        found = builder.position(size)
    else:
        part = builder.value("get_dimension_size", [local.value(operand)], op.result.type, **op.attrs)
        found = builder.combine("multiply", part, builder.splat(str(count), part.type))
    local.replace(op, [found])


def localize_iota(op: Op, local: Localizer) -> None:
    """A shorter iota, plus the start of the device's shard."""
    sharding = local.sharding(op.result)
    if sharding is None or sharding.is_fully_replicated:
        local.keep(op)
        return
    builder = local.builder(op)
    type = local.local_type_of(op, op.result)
    dim = op.attrs["iota_dimension"].value
    axes = sharding.dim_axes[dim]
    exact = (
        type if _is_exact(type.element, (op.result.type.shape or ())[dim]) else builder.type(type.shape or (), "i32")
    )
    value = builder.iota(exact if axes else type, dim)
    if axes:
        offset = builder.dim_offset(axes, local.mesh(sharding), (type.shape or ())[dim])
        offset = builder.convert(offset, exact.element)
        value = builder.combine("add", value, builder.broadcast(offset, type.shape or ()))
        if exact is not type:
            value = builder.convert(value, type.element)
    local.replace(op, [value])


def _is_exact(element: str, size: int) -> bool:
    """Whether a type can represent all numbers below a size. If not, the sum would be rounded twice."""
    bits = next((bits for name, bits in _MANTISSAS.items() if element.startswith(name)), None)
    return bits is None or size <= 2**bits
