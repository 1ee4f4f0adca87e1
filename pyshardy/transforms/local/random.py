"""Random bits on every device.

Source: docs/semantics/partitioner.md#random-bits
"""

from __future__ import annotations

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import axes_size, join_axes, ordered_refs
from pyshardy.core.devices import shard_indices
from pyshardy.core.sharding import ReductionKind, TensorSharding
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op, Value
from pyshardy.transforms.builder import Builder, zero_text
from pyshardy.transforms.local.collectives import leader
from pyshardy.transforms.local.groups import Collectives
from pyshardy.transforms.local.localizer import Localizer

_ALGORITHM = "rng_algorithm"
_WORDS = {"ui32": 32, "i32": 32, "ui64": 64, "i64": 64}


def localize_rng_bit_generator(op: Op, local: Localizer) -> None:
    """Give every shard its own random state; the state that is returned is that of the first shard."""
    state, numbers = op.results
    sharding = local.sharding(numbers)
    if sharding is None or sharding.is_fully_replicated:
        local.keep(op)
        return
    if local.is_sharded(state) or local.is_sharded(op.operands[0]):
        raise PassError(op, "has a state that is sharded")
    given_element = op.operands[0].type.element  # StableHLO's verifier accepts another one in the result
    bits = _WORDS.get(given_element)
    if bits is None:
        raise PassError(op, f"has a state of {given_element} and sharded results; needed 32 or 64 bit integers")
    axes = join_axes(sharding.dim_axes, local.mesh(sharding))
    builder, given = local.builder(op), local.value(op.operands[0])
    id = builder.device_id()
    own = _own_state(builder, given, id, axes, sharding, local, bits)
    types = [state.type, local.local_type_of(op, numbers)]
    made = builder.op("rng_bit_generator", [own], types, {_ALGORITHM: op.attrs[_ALGORITHM]})
    is_first = builder.look_up([index == 0 for index in shard_indices(axes, local.mesh(sharding))], "i1", id)
    rest = builder.splat(zero_text(state.type.element), state.type)
    first = builder.select(is_first, made.results[0], rest)
    shared = Collectives(local, builder, sharding.mesh).all_reduce(first, axes, ReductionKind.SUM)
    local.replace(op, [shared, made.results[1]])


def _own_state(
    builder: Builder, state: Value, id: Value, axes: Axes, sharding: TensorSharding, local: Localizer, bits: int
) -> Value:
    """The state plus a number that differs per shard."""
    element = state.type.element
    numbers = [mixed(index, bits) for index in shard_indices(axes, local.mesh(sharding))]
    if not element.startswith("u"):
        numbers = [number - 2**bits if number >= 2 ** (bits - 1) else number for number in numbers]
    own = builder.look_up(numbers, element, id)
    return builder.combine("add", state, builder.broadcast(own, state.type.shape or ()))


def localize_rng(op: Op, local: Localizer) -> None:
    """Random numbers with the shape of a shard, equal on all devices with the same shard."""
    sharding = local.sharding(op.result)
    if sharding is None or not local.mesh(sharding).axes:
        local.keep(op)
        return
    mesh = local.mesh(sharding)
    builder = local.builder(op)
    type = local.local_type_of(op, op.result)
    shape = local.attrs.tensor_type((type.rank,), "i64")
    sizes = builder.table(type.shape or (), "i64") if type.rank else builder.splat("[]", shape)
    low, high, _ = local.values(op.operands)
    made = builder.value("rng", [low, high, sizes], type, rng_distribution=op.attrs["rng_distribution"])
    used = sum(sharding.dim_axes, ())
    rest = tuple(ref for ref in ordered_refs(mesh, used) if not any(axis.overlaps(ref) for axis in used))
    rest = join_axes([rest], mesh)
    if axes_size(rest, mesh) > 1:
        zero = builder.splat(zero_text(type.element), type)
        first = builder.select(leader(builder, rest, mesh), made, zero)
        made = Collectives(local, builder, sharding.mesh).all_reduce(first, rest, ReductionKind.SUM)
    local.replace(op, [made])


_STEPS = (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
_MASK = 2**64 - 1


def mixed(number: int, bits: int) -> int:
    """The low half of the 64-bit finaliser of MurmurHash3; for 64 bits, that half twice.

    >>> hex(mixed(0, 32)), hex(mixed(1, 32)), hex(mixed(1, 64))
    ('0x0', '0x34c2cb2c', '0x34c2cb2c34c2cb2c')
    """
    for step in _STEPS:
        number ^= number >> 33
        number = number * step & _MASK
    number = (number ^ number >> 33) & 0xFFFFFFFF
    return number if bits == 32 else number << 32 | number
