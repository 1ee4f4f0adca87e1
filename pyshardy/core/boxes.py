"""What every device holds of a tensor, from its sharding and shape.

A dimension of size `d` in `n` shards gives every device `ceil(d / n)` elements; the last shards are padded.

Source: docs/semantics/representation.md#what-a-device-holds
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyshardy.core.axes import AxisRef
from pyshardy.core.given import as_shape
from pyshardy.core.mesh import Mesh, as_mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.core.sharding_on_mesh import shard_counts
from pyshardy.errors import InvalidShardingError


@dataclass(frozen=True, slots=True)
class Box:
    """The part of a tensor that one device holds: one half-open range of global indices per dimension.

    `padding` counts, per dimension, the elements of the local buffer beyond the end of the tensor.
    """

    starts: tuple[int, ...]
    stops: tuple[int, ...]
    padding: tuple[int, ...]


def local_shape(sharding: TensorSharding | Any, mesh: Mesh | Any, shape: Sequence[int]) -> tuple[int, ...]:
    """Shape of the buffer on one device; the global shape if the sharding is None or has rank 0.

    Args:
        sharding: The sharding; a `NamedSharding` of JAX works too. None means no sharding.
        mesh: Its mesh: a `Mesh`, a mesh of JAX, or axis names with sizes.
        shape: The shape of the whole tensor.

    Raises:
        InvalidShardingError: The sharding and the shape have different ranks.

    >>> from pyshardy.core.sharding import DimSharding
    >>> sharding = TensorSharding("m", [DimSharding(["x"]), DimSharding()])
    >>> local_shape(sharding, Mesh([("x", 4)]), (10, 3))
    (3, 3)
    """
    if type(shape) is not tuple:
        shape = as_shape(shape, "computing a local shape")
    if type(sharding) is not TensorSharding or type(mesh) is not Mesh:
        sharding = None if sharding is None else _of_rank(TensorSharding.of(sharding), len(shape))
        mesh = as_mesh(mesh)
    if sharding is None or not sharding.dims:
        return tuple(shape)
    if len(shape) != sharding.rank:
        raise InvalidShardingError(
            f"computing the local shape under {sharding}", got=f"shape {tuple(shape)}", needed=f"rank {sharding.rank}"
        )
    return tuple(-(-size // count) for size, count in zip(shape, shard_counts(sharding, mesh)))


def _of_rank(sharding: TensorSharding, rank: int) -> TensorSharding:
    """The sharding, extended to this rank with empty dimensions: a spec of JAX may leave out the last ones."""
    return sharding.with_dims((*sharding.dims, *[DimSharding()] * (rank - sharding.rank)))


def coordinate_along(axis: AxisRef, mesh: Mesh, coordinates: Sequence[int]) -> int:
    """Coordinate of a device along a reference, from its coordinates along the axes of the mesh.

    >>> coordinate_along(AxisRef("x", 2, 2), Mesh([("x", 8)]), (5,))
    0
    """
    coordinate = coordinates[mesh.positions[axis.name]]
    if axis.size is None:
        return coordinate
    return coordinate // (mesh.axis_size(axis.name) // axis.end(mesh)) % axis.size


def device_boxes(sharding: TensorSharding, mesh: Mesh, shape: Sequence[int]) -> dict[int, Box]:
    """What every device of the mesh holds of a tensor, keyed by device id, in mesh order.

    >>> from pyshardy.core.sharding import DimSharding
    >>> boxes = device_boxes(TensorSharding("m", [DimSharding(["x"])]), Mesh([("x", 2)]), (3,))
    >>> boxes[1]
    Box(starts=(2,), stops=(3,), padding=(1,))
    """
    local = local_shape(sharding, mesh, shape)
    dims = sharding.dims if sharding.dims else ()
    found: dict[int, Box] = {}
    for position, device in enumerate(mesh.device_order):
        coordinates = mesh.coordinates(position)
        starts, stops = [], []
        for index, (size, width) in enumerate(zip(shape, local)):
            shard = 0
            for axis in dims[index].axes if dims else ():
                shard = shard * axis.length(mesh) + coordinate_along(axis, mesh, coordinates)
            starts.append(min(shard * width, size))
            stops.append(min(starts[-1] + width, size))
        padding = tuple(width - (stop - start) for width, start, stop in zip(local, starts, stops))
        found[device] = Box(tuple(starts), tuple(stops), padding)
    return found
