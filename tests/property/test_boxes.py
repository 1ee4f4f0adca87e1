"""Laws of what devices hold: the boxes of a sharding tile the tensor, once per group of replicas."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod

from hypothesis import given
from hypothesis import strategies as st

from pyshardy.core.axes import AxisRef
from pyshardy.core.axis_lists import axes_size, subtract_axes
from pyshardy.core.boxes import Box, coordinate_along, device_boxes, local_shape
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import shard_counts

from .positions import along, labels, number
from .strategies import axis_refs, meshes, on_a_mesh, tensor_shardings

Drawn = tuple[Mesh, tuple[TensorSharding, tuple[int, ...]]]


@st.composite
def _with_shape(draw: st.DrawFn, mesh: Mesh) -> tuple[TensorSharding, tuple[int, ...]]:
    sharding = draw(tensor_shardings(mesh))
    return sharding, tuple(draw(st.integers(0, 9)) for _ in sharding.dims)


SHARDED = on_a_mesh(_with_shape, meshes(max_size=48))


def _elements(box: Box) -> list[tuple[int, ...]]:
    return list(product(*(range(start, stop) for start, stop in zip(box.starts, box.stops))))


@given(SHARDED)
def test_boxes_tile_the_tensor_once_per_group_of_replicas(drawn: Drawn) -> None:
    mesh, (sharding, shape) = drawn
    boxes = list(device_boxes(sharding, mesh, shape).values())
    used = tuple(axis for axes in sharding.dim_axes for axis in axes)
    unused = subtract_axes(tuple(map(AxisRef, mesh.axis_names)), used, mesh)
    held: dict[tuple[int, ...], Counter[tuple[int, ...]]] = {}
    for box, group in zip(boxes, labels(unused, mesh)):
        held.setdefault(group, Counter()).update(_elements(box))
    assert len(held) == mesh.size // prod(shard_counts(sharding, mesh))
    once = Counter(product(*map(range, shape)))
    assert all(count == once for count in held.values())


@given(SHARDED)
def test_a_box_follows_from_the_shard_numbers(drawn: Drawn) -> None:
    mesh, (sharding, shape) = drawn
    boxes = list(device_boxes(sharding, mesh, shape).values())
    for dim, (axes, size) in enumerate(zip(sharding.dim_axes, shape)):
        width = -(-size // axes_size(axes, mesh))
        for box, label in zip(boxes, labels(axes, mesh)):
            shard = number(label, axes, mesh)
            held = [index for index in range(size) if shard * width <= index < (shard + 1) * width]
            assert list(range(box.starts[dim], box.stops[dim])) == held


@given(SHARDED)
def test_boxes_and_padding_fill_the_local_shape(drawn: Drawn) -> None:
    mesh, (sharding, shape) = drawn
    local = local_shape(sharding, mesh, shape)
    for box in device_boxes(sharding, mesh, shape).values():
        assert tuple(stop - start + pad for start, stop, pad in zip(box.starts, box.stops, box.padding)) == local
        assert all(0 <= start <= stop <= size for start, stop, size in zip(box.starts, box.stops, shape))
        assert min(box.padding, default=0) >= 0


@given(SHARDED)
def test_local_shapes_cover_the_tensor_as_tightly_as_they_can(drawn: Drawn) -> None:
    mesh, (sharding, shape) = drawn
    local = local_shape(sharding, mesh, shape)
    for width, count, size in zip(local, shard_counts(sharding, mesh), shape, strict=True):
        assert width * count >= size > (width - 1) * count or width == size == 0


@given(SHARDED)
def test_devices_stand_in_mesh_order(drawn: Drawn) -> None:
    mesh, (sharding, shape) = drawn
    boxes = device_boxes(sharding, mesh, shape)
    assert tuple(boxes) == mesh.device_order
    if mesh.axes:
        natural = device_boxes(sharding, Mesh(mesh.axes), shape)
        assert list(boxes.values()) == list(natural.values())
        assert sorted(boxes) == list(natural)


@given(SHARDED)
def test_only_the_axes_of_the_dimensions_matter(drawn: Drawn) -> None:
    mesh, (sharding, shape) = drawn
    bare = sharding.with_replicated(()).with_unreduced(()).opened()
    assert device_boxes(bare, mesh, shape) == device_boxes(sharding, mesh, shape)


@given(on_a_mesh(axis_refs))
def test_coordinates_are_those_of_the_reshaped_axis(drawn: tuple[Mesh, AxisRef]) -> None:
    mesh, axis = drawn
    places = along(axis, mesh.axis_size(axis.name))
    at = mesh.positions[axis.name]
    for position in range(mesh.size):
        coordinates = mesh.coordinates(position)
        assert coordinate_along(axis, mesh, coordinates) == places[coordinates[at]]


@given(meshes())
def test_coordinates_count_in_row_major_order(mesh: Mesh) -> None:
    found = [mesh.coordinates(position) for position in range(mesh.size)]
    assert found == list(product(*(range(size) for _, size in mesh.axes)))
    assert sorted(mesh.device_order) == list(range(mesh.size)) or mesh.is_single_device
