"""Halo exchange along one dimension, inside a manual computation.

Source: docs/semantics/partitioner.md#halo-exchange
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import axes_size
from pyshardy.core.devices import shard_indices, shift_pairs
from pyshardy.core.mesh import Mesh
from pyshardy.ir.nodes import Value
from pyshardy.transforms.builder import Builder
from pyshardy.transforms.exchanges.sharded_op import Body

_LARGEST = 2**31 - 1
"""The largest number of type i32."""
Start = Callable[[Builder, Value], tuple[Value, Value]]
"""Computes a start index from the index of a shard; also returns a zero."""


class Exchange(NamedTuple):
    """A halo exchange along one dimension: what to fetch, and what to keep.

    Attributes:
        dim: The dimension.
        axes: The axes that shard it.
        left: The number of preceding neighbours whose shards are fetched.
        right: The number of following neighbours.
        footprint: The number of elements to keep.
        start: Computes the index of the first element to keep. Indices count from a margin as wide as the footprint.
        dilation: The distance of elements after interior padding, which comes first.
        stride: The result has every n-th of the kept elements.
    """

    dim: int
    axes: Axes
    left: int
    right: int
    footprint: int
    start: Start
    dilation: int = 1
    stride: int = 1


def exchange(body: Body, value: Value, padding: Value, wanted: Exchange) -> Value:
    """The elements that a shard needs, from its own data and that of its neighbours."""
    sharded, dim = body.sharded, wanted.dim
    index = group_index(body.plain, wanted.axes, sharded.mesh)
    pieces = _fetch(body, value, padding, wanted, index)
    marked = body.marked()
    joined = marked.concatenate(pieces, dim)
    rank = value.type.rank
    margin = _at(dim, rank, wanted.footprint * wanted.dilation)
    spread = marked.pad(joined, padding, margin, margin, _at(dim, rank, wanted.dilation - 1))
    return _window(body, spread, wanted, index)


def _fetch(body: Body, value: Value, padding: Value, wanted: Exchange, index: Value) -> list[Value]:
    """The shards of the neighbours and the own shard, in order; padding where there is no neighbour."""
    count = axes_size(wanted.axes, body.sharded.mesh)
    pieces = []
    for hop in range(wanted.left, 0, -1):
        pieces.append(_from(body, value, padding, wanted.axes, index, hop, ("GE", hop)))
    pieces.append(value)
    for hop in range(1, wanted.right + 1):
        pieces.append(_from(body, value, padding, wanted.axes, index, -hop, ("LT", count - hop)))
    return pieces


def _from(
    body: Body, value: Value, padding: Value, axes: Axes, index: Value, step: int, condition: tuple[str, int]
) -> Value:
    """The shard `step` positions before this one; padding unless the index of this shard fulfils the condition."""
    builder, sharded = body.plain, body.sharded
    pairs = shift_pairs(axes, sharded.mesh, step)
    sent = builder.permute(value, pairs, sharded.env.next_channel())
    direction, bound = condition
    exists = builder.compare(direction, index, _number(builder, bound))
    shape = value.type.shape or ()
    filler = builder.broadcast(padding, shape)
    return builder.select(builder.broadcast(exists, shape), sent, filler)


def _window(body: Body, spread: Value, wanted: Exchange, index: Value) -> Value:
    """Slice out the elements to keep."""
    builder, marked, dim = body.plain, body.marked(), wanted.dim
    start, zero = wanted.start(builder, index)
    shape = list(spread.type.shape or ())
    starts = [start if other == dim else zero for other in range(len(shape))]
    shape[dim] = wanted.footprint
    found = marked.dynamic_slice(spread, starts, shape)
    if wanted.stride == 1 or wanted.footprint == 1:
        return found
    strides = [wanted.stride if other == dim else 1 for other in range(len(shape))]
    return marked.slice(found, [0] * len(shape), shape, strides)


def group_index(builder: Builder, axes: Axes, mesh: Mesh) -> Value:
    """The index of this device along some axes, a `tensor<i32>`.

    Raises:
        InvalidShardingError: The mesh has more devices than this type can number.
    """
    id = builder.device_id()
    if mesh.device_ids is not None:
        return builder.entry(shard_indices(axes, mesh), id)
    if mesh.size > _LARGEST:
        mesh.check_listable()
    id = builder.convert(id, "i32")
    index = None
    for axis in axes:
        coordinate = _coordinate(builder, id, mesh, axis.length(mesh), _distance(axis.name, axis.end(mesh), mesh))
        if index is None:
            index = coordinate
        else:
            scaled = builder.combine("multiply", index, _number(builder, axis.length(mesh)))
            index = builder.combine("add", scaled, coordinate)
    assert index is not None
    return index


def _distance(name: str, end: int, mesh: Mesh) -> int:
    """The distance of neighbouring devices along a part of an axis that ends at `end`."""
    distance = mesh.axis_size(name) // end
    for _, size in mesh.axes[mesh.positions[name] + 1 :]:
        distance *= size
    return distance


def _coordinate(builder: Builder, id: Value, mesh: Mesh, size: int, distance: int) -> Value:
    if distance > 1:
        id = builder.combine("divide", id, _number(builder, distance))
    if size == mesh.size:
        return id
    return builder.combine("remainder", id, _number(builder, size))


def linear_start(slope: int, offset: int) -> Start:
    """A start that grows by `slope` from shard to shard, but is never negative."""

    def make(builder: Builder, index: Value) -> tuple[Value, Value]:
        factor, summand = _number(builder, slope), _number(builder, offset)
        moved = builder.combine("add", builder.combine("multiply", index, factor), summand)
        zero = _number(builder, 0)
        return builder.combine("maximum", moved, zero), zero

    return make


def listed_start(offsets: tuple[int, ...]) -> Start:
    """A start from a list with one entry per shard."""
    return lambda builder, index: (builder.entry(offsets, index), _number(builder, 0))


def _number(builder: Builder, value: int) -> Value:
    return builder.position(value)


def _at(dim: int, rank: int, value: int) -> list[int]:
    return [value if other == dim else 0 for other in range(rank)]
