"""Fetches the interval of a dimension that the windows of a shard cover, inside a manual computation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import axes_size
from pyshardy.core.devices import shift_pairs
from pyshardy.core.mesh import Mesh
from pyshardy.core.needs import Need
from pyshardy.ir.nodes import Value
from pyshardy.ir.source import place_for
from pyshardy.reshard.window_halo import Fetch, NeighbourPart, Stretches
from pyshardy.transforms.builder import Builder
from pyshardy.transforms.exchanges.exchange import group_index
from pyshardy.transforms.exchanges.sharded_op import Environment


class Along(NamedTuple):
    """A dimension along which shards need elements of other shards, or only a part of their own.

    Attributes:
        dim: The dimension of the input.
        axes: The axes along which the start of the interval grows from shard to shard.
        stretches: The interval that every shard needs.
        fetch: How a shard gets it.
        is_whole: Whether every device has all of the input along this dimension.
        place: The number of this dimension in the window of the op.
    """

    dim: int
    axes: Axes
    stretches: Stretches
    fetch: Fetch
    is_whole: bool
    place: int = 0


class Margins(NamedTuple):
    """The part of an interval that is outside the data, in positions.

    Attributes:
        low: The number of positions before the data.
        high: The number of positions after it.
        dilation: The dilation that the op itself must apply.
    """

    low: int
    high: int
    dilation: int


@dataclass(frozen=True, slots=True)
class Taker:
    """Makes the ops that take intervals out of values.

    Attributes:
        plain: Makes ops on indices in the manual computation.
        builder: Makes ops on data there, sharded along the axes that are not manual.
        mesh: The mesh.
        env: What all ops of a module share.
        fill: The value outside the data, a scalar.
        fills_zero: Whether that value is zero. A device that receives nothing in a permute also gets zeros.
        need: What the communication is for.
    """

    plain: Builder
    builder: Builder
    mesh: Mesh
    env: Environment
    fill: Value
    fills_zero: bool
    need: Need

    def take(self, value: Value, along: Along) -> tuple[Value, Margins]:
        """The interval of this device, and the part of it that is outside the data."""
        fetch, dilation = along.fetch, along.stretches.dilation
        kept, low, high = self._kept(value, along)
        if fetch.phase is None:
            return self._spread(kept, along, low, high), Margins(0, 0, 1)
        before = fetch.phase + low * dilation
        after = along.stretches.extent - before - (_shape(kept)[along.dim] - 1) * dilation - 1
        if min(before, after) < 0:  # no interval contains an element
            spread = self._padded(kept, along.dim, before, after, dilation - 1)
            return spread, Margins(0, 0, 1)
        return kept, Margins(before, after, dilation)

    def elements(self, value: Value, along: Along) -> Value:
        """The elements of this device's interval, with the fill value outside the data."""
        kept, low, high = self._kept(value, along)
        return self._padded(kept, along.dim, low, high)

    def part(self, value: Value, dim: int, axes: Axes, starts: tuple[int, ...], length: int) -> Value:
        """A part of a value. Its start depends on the shard, unless there is a single start."""
        if len(starts) > 1:
            return self._slide(value, dim, starts, length, self._index(axes))
        kept, low, high = self._cut(value, dim, starts[0], length)
        return self._padded(kept, dim, low, high)

    def _index(self, axes: Axes) -> Value:
        return group_index(self.plain, axes, self.mesh)

    def _kept(self, value: Value, along: Along) -> tuple[Value, int, int]:
        """The elements of this device's interval that exist, and how many are outside the data on both sides."""
        fetch = along.fetch
        joined = value if along.is_whole else self._joined(value, along)
        if fetch.start is not None:
            return self._cut(joined, along.dim, fetch.start, fetch.length)
        return self._slide(joined, along.dim, fetch.starts, fetch.length, self._index(along.axes)), 0, 0

    def _joined(self, value: Value, along: Along) -> Value:
        """The own shard, with the needed parts of its neighbours around it."""
        index = self._index(along.axes) if along.fetch.parts and not self.fills_zero else None
        dim, shard = along.dim, _shape(value)[along.dim]
        pieces: list[Value] = []
        position = along.fetch.begin
        for part in sorted((*along.fetch.parts, NeighbourPart(0, 0, shard))):
            gap = part.hop * shard + part.first - position
            if gap:
                pieces[-1] = self._padded(pieces[-1], dim, 0, gap)
            pieces.append(value if part.hop == 0 else self._received(value, along, part, index))
            position += gap + part.end - part.first
        return pieces[0] if len(pieces) == 1 else self.builder.concatenate(pieces, dim)

    def _received(self, value: Value, along: Along, part: NeighbourPart, index: Value | None) -> Value:
        """The data of the shard `hops` positions after this one; the fill value if there is none."""
        builder = self.builder
        sent = self._part(value, along.dim, part.first, part.end)
        found = builder.permute(sent, shift_pairs(along.axes, self.mesh, -part.hop), self.env.next_channel())
        assert found.defining_op is not None
        found.defining_op.location = place_for(builder.location, self.need)
        if self.fills_zero:
            return found
        assert index is not None
        count = axes_size(along.axes, self.mesh)
        direction, bound = ("GE", -part.hop) if part.hop < 0 else ("LT", count - part.hop)
        exists = self.plain.compare(direction, index, self._number(bound))
        shape = _shape(found)
        return builder.select(builder.broadcast(exists, shape), found, builder.broadcast(self.fill, shape))

    def _cut(self, value: Value, dim: int, start: int, length: int) -> tuple[Value, int, int]:
        """An interval with the same start on all devices: its elements, and how many are outside the data."""
        size = _shape(value)[dim]
        first, end = max(0, start), min(size, start + length)
        if first >= end:  # it is outside the data
            first = 0 if start < 0 else size - 1
            only = self._part(value, dim, first, first + 1)
            return self._padded(only, dim, first - start, start + length - first - 1), 0, 0
        return self._part(value, dim, first, end), first - start, start + length - end

    def _slide(self, value: Value, dim: int, starts: tuple[int, ...], length: int, index: Value) -> Value:
        """An interval whose start depends on the device."""
        size = _shape(value)[dim]
        low, high = max(0, -min(starts)), max(0, max(starts) + length - size)
        padded = self._padded(value, dim, low, high)
        shape = list(_shape(padded))
        shape[dim] = length
        start, zero = self._listed([start + low for start in starts], index), self._number(0)
        return self.builder.dynamic_slice(
            padded, [start if other == dim else zero for other in range(len(shape))], shape
        )

    def _spread(self, value: Value, along: Along, low: int, high: int) -> Value:
        """An interval with interior padding between its elements; their phase depends on the device."""
        dim, dilation, phases = along.dim, along.stretches.dilation, along.fetch.phases
        extent = along.stretches.extent
        size = (_shape(value)[dim] + low + high - 1) * dilation + 1
        before = max(phases)
        after = max(0, before - min(phases) + extent - before - size)
        filled = self._padded(value, dim, before + low * dilation, high * dilation + after, dilation - 1)
        starts = tuple(before - phase for phase in phases)
        return self._slide(filled, dim, starts, extent, self._index(along.axes))

    def _listed(self, numbers: list[int], index: Value) -> Value:
        """The entry of this device in a list of numbers; computed from the index if they are evenly spaced."""
        builder = self.plain
        step = numbers[1] - numbers[0]
        if any(other - one != step for one, other in zip(numbers, numbers[1:])):
            return builder.entry(numbers, index)
        moved = index if step == 1 else builder.combine("multiply", index, self._number(step))
        return moved if numbers[0] == 0 else builder.combine("add", moved, self._number(numbers[0]))

    def _part(self, value: Value, dim: int, first: int, end: int) -> Value:
        shape = _shape(value)
        if (first, end) == (0, shape[dim]):
            return value
        limits = [end if other == dim else size for other, size in enumerate(shape)]
        return self.builder.slice(value, _at(dim, len(shape), first), limits)

    def _padded(self, value: Value, dim: int, low: int, high: int, interior: int = 0) -> Value:
        rank = len(_shape(value))
        if not (low or high or interior):
            return value
        places = (_at(dim, rank, number) for number in (low, high, interior))
        return self.builder.pad(value, self.fill, *places)

    def _number(self, value: int) -> Value:
        return self.plain.position(value)


def _at(dim: int, rank: int, value: int) -> list[int]:
    return [value if other == dim else 0 for other in range(rank)]


def _shape(value: Value) -> tuple[int, ...]:
    assert value.type.shape is not None
    return value.type.shape
