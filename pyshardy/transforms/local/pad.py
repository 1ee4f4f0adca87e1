"""`pad` of sharded dimensions.

Source: docs/semantics/partitioner.md#pads
"""

from __future__ import annotations

from typing import NamedTuple

from pyshardy.core.devices import shard_indices
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op, Value
from pyshardy.transforms.builder import Builder
from pyshardy.transforms.local.groups import Collectives
from pyshardy.transforms.local.localizer import Localizer
from pyshardy.transforms.local.slicing import check_same_axes


class _Dim(NamedTuple):
    """How one dimension is padded.

    Attributes:
        shards: Per device, the index of its shard.
        offsets: Per device, the start of the local data in the local result.
        expanded: Size of the local data with interior padding.
        size: Size of the local result.
        interior: The interior padding.
    """

    shards: tuple[int, ...]
    offsets: tuple[int, ...]
    expanded: int
    size: int
    interior: int

    @property
    def is_uniform(self) -> bool:
        """Whether all devices pad alike."""
        return len(set(self.offsets)) == 1

    @property
    def moves(self) -> bool:
        """Whether an element of a shard belongs to the result of another device."""
        total = self.size * (1 + max(self.shards))
        for shard, offset in zip(self.shards, self.offsets):
            for place in (offset, offset + self.expanded - 1):
                if self.expanded and 0 <= shard * self.size + place < total and not 0 <= place < self.size:
                    return True
        return False

    @property
    def whole(self) -> _Dim:
        """The same dimension on a device that has all the data."""
        step = self.interior + 1
        shard_size = (self.expanded - 1) // step + 1
        first = self.offsets[self.shards.index(0)]
        offsets = tuple(first - shard * self.size for shard in self.shards)
        count = shard_size * (1 + max(self.shards))
        return self._replace(offsets=offsets, expanded=(count - 1) * step + 1)

    def low(self, exact: bool) -> int:
        """The low padding: that of all devices, or enough for each of them."""
        return self.offsets[0] if exact else max(0, *self.offsets)

    def high(self, exact: bool) -> int:
        """The high padding: that of all devices, or enough for each of them."""
        room = self.size - self.expanded
        return room - self.offsets[0] if exact else max(0, *(room - offset for offset in self.offsets))


def localize_pad(op: Op, local: Localizer) -> None:
    """Pad a shard. If devices need different padding, pad more and slice.

    If elements move to other devices, every device gathers and pads the whole dimension, and slices out its part.
    """
    operand, padding = op.operands
    if not local.is_sharded(operand):
        if local.is_sharded(op.result):
            raise PassError(op, "has a sharded result and an operand that is not sharded; reshard one of them first")
        local.keep(op)
        return
    check_same_axes(op, local.splitting_axes(operand), local.splitting_axes(op.result))
    builder, value = local.builder(op), local.value(operand)
    dims = _dims(op, local)
    moved = [number for number, dim in enumerate(dims) if dim.moves]
    if moved:
        value = _gathered(op, builder, value, moved, local)
        dims = [dim.whole if dim.moves else dim for dim in dims]
    is_uniform = all(dim.is_uniform for dim in dims)
    value = builder.pad(
        value,
        local.value(padding),
        [dim.low(is_uniform) for dim in dims],
        [dim.high(is_uniform) for dim in dims],
        [dim.interior for dim in dims],
    )
    if not is_uniform:
        value = _cut(builder, value, dims)
    local.replace(op, [value])


def _dims(op: Op, local: Localizer) -> list[_Dim]:
    operand = op.operands[0]
    sharding = local.sharding(operand)
    assert sharding is not None
    mesh = local.mesh(sharding)
    before = local.local_type_of(op, operand).shape or ()
    after = local.local_type_of(op, op.result).shape or ()
    lows, interiors = tuple(op.attrs["edge_padding_low"]), tuple(op.attrs["interior_padding"])
    found = []
    for dim, axes in enumerate(sharding.dim_axes):
        size, new, step = before[dim], after[dim], interiors[dim] + 1
        indices = shard_indices(axes, mesh)
        offsets = tuple(index * size * step + lows[dim] - index * new for index in indices)
        found.append(_Dim(indices, offsets, (size - 1) * step + 1 if size else 0, new, interiors[dim]))
    return found


def _gathered(op: Op, builder: Builder, value: Value, dims: list[int], local: Localizer) -> Value:
    """The value with these dimensions gathered."""
    sharding = local.sharding(op.operands[0])
    assert sharding is not None
    collectives = Collectives(local, builder, sharding.mesh)
    for dim in dims:
        value = collectives.all_gather(value, sharding.dim_axes[dim], dim)
    return value


def _cut(builder: Builder, value: Value, dims: list[_Dim]) -> Value:
    """The device's result, sliced out of a value with too much padding."""
    id = builder.device_id()
    starts = [
        builder.position(dim.low(False) - dim.offsets[0])
        if dim.is_uniform
        else builder.look_up([dim.low(False) - offset for offset in dim.offsets], id=id)
        for dim in dims
    ]
    return builder.dynamic_slice(value, starts, [dim.size for dim in dims])
