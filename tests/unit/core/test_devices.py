"""The grids and groups of devices, against what `device_boxes` says every device holds."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyshardy.core.axes import AxisRef
from pyshardy.core.axis_lists import axes_size
from pyshardy.core.boxes import device_boxes
from pyshardy.core.devices import axes_moved, axes_of_groups, padded_shape, permutation, replica_groups, shard_indices
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.errors import InvalidShardingError

MESHES = [Mesh([("x", 2), ("y", 4)], order) for order in (None, (3, 1, 2, 0, 7, 5, 6, 4), tuple(range(7, -1, -1)))]
REFS = [AxisRef("x"), AxisRef("y", 1, 2), AxisRef("y", 2, 2)]
axes_lists = st.sampled_from([axes for count in range(4) for axes in permutations(REFS, count)])
meshes = st.sampled_from(MESHES)


def one_dim(axes: tuple[AxisRef, ...], mesh: Mesh) -> TensorSharding:
    merged: list[AxisRef] = []
    for axis in axes:
        if merged and merged[-1].can_merge(axis):
            merged[-1] = merged[-1].merge(axis, mesh)
        else:
            merged.append(axis)
    return TensorSharding("m", [DimSharding(merged)])


@given(meshes, axes_lists)
def test_index_is_where_the_box_begins(mesh: Mesh, axes: tuple[AxisRef, ...]) -> None:
    boxes = device_boxes(one_dim(axes, mesh), mesh, (axes_size(axes, mesh) * 3,))
    assert shard_indices(axes, mesh) == tuple(boxes[device].starts[0] // 3 for device in range(mesh.size))


@given(meshes, axes_lists)
def test_groups_hold_every_device_once_in_the_order_of_the_data(mesh: Mesh, axes: tuple[AxisRef, ...]) -> None:
    groups = replica_groups(axes, mesh)
    indices = shard_indices(axes, mesh)
    assert sorted(device for group in groups for device in group) == list(range(mesh.size))
    for group in groups:
        assert [indices[device] for device in group] == list(range(axes_size(axes, mesh)))


def test_groups_with_an_order_of_devices() -> None:
    mesh = Mesh([("x", 2), ("y", 2)], [3, 1, 2, 0])
    assert replica_groups((AxisRef("x"),), mesh) == ((3, 2), (1, 0))
    assert replica_groups((AxisRef("x"), AxisRef("z")), Mesh([("x", 2), ("y", 2), ("z", 2)])) == (
        (0, 1, 4, 5),
        (2, 3, 6, 7),
    )


@given(meshes, meshes, axes_lists, st.data())
def test_permutation_brings_every_shard_to_where_it_belongs(
    before_mesh: Mesh, mesh: Mesh, axes: tuple[AxisRef, ...], data: st.DataObject
) -> None:
    shuffled = tuple(data.draw(st.permutations(axes)))
    before, after = one_dim(axes, mesh), one_dim(shuffled, mesh)
    shape = (axes_size(axes, mesh),)
    old, new = device_boxes(before, before_mesh, shape), device_boxes(after, mesh, shape)
    targets = permutation(before, before_mesh, after, mesh)
    assert sorted(targets) == list(range(mesh.size))
    assert all(old[source] == new[target] for source, target in enumerate(targets))


@pytest.mark.parametrize("parts", [((2, 3), (1, 3)), ((1, 2), (3, 2)), ((1, 4), (3, 4)), ((1, 6), (2, 6))])
@pytest.mark.parametrize("order", [None, (3, 1, 2, 0, 11, 7, 5, 6, 4, 10, 8, 9)])
def test_parts_that_do_not_fit_each_other(parts: tuple[tuple[int, int], ...], order: tuple[int, ...] | None) -> None:
    before_mesh, mesh = Mesh([("x", 12)]), Mesh([("x", 12)], order)
    before, after = (TensorSharding("m", [DimSharding([AxisRef("x", *part)])]) for part in parts)
    old, new = device_boxes(before, before_mesh, (12,)), device_boxes(after, mesh, (12,))
    targets = permutation(before, before_mesh, after, mesh)
    assert sorted(targets) == list(range(12))
    assert all(old[source] == new[target] for source, target in enumerate(targets))


@pytest.mark.parametrize(("shape", "expected"), [((10, 3), (12, 3)), ((8, -1), (8, -1)), ((0, 1), (0, 1))])
def test_padded_shape(shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    sharding = TensorSharding("m", [DimSharding(["y"]), DimSharding()])
    assert padded_shape(sharding, MESHES[0], shape) == expected


@given(meshes, axes_lists)
def test_axes_are_found_from_their_groups(mesh: Mesh, axes: tuple[AxisRef, ...]) -> None:
    groups = replica_groups(axes, mesh)
    found = axes_of_groups(tuple(reversed(groups)), mesh)
    assert found == one_dim(axes, mesh).dims[0].axes


@pytest.mark.parametrize("groups", [((0, 1, 2), (3, 4, 5, 6, 7)), ((0, 1),), ((0, 3), (1, 2), (4, 7), (5, 6))])
def test_groups_that_no_axes_have(groups: tuple[tuple[int, ...], ...]) -> None:
    assert axes_of_groups(groups, MESHES[0]) is None


def test_axes_of_groups_of_other_sizes() -> None:
    mesh = Mesh([("x", 3), ("y", 4)])
    for axes in permutations([AxisRef("x"), AxisRef("y", 1, 2), AxisRef("y", 2, 2)], 2):
        assert axes_of_groups(replica_groups(axes, mesh), mesh) == one_dim(axes, mesh).dims[0].axes


@given(meshes, axes_lists, st.data())
def test_axes_moved_are_those_of_the_shardings(mesh: Mesh, axes: tuple[AxisRef, ...], data: st.DataObject) -> None:
    shuffled = tuple(data.draw(st.permutations(axes)))
    targets = permutation(one_dim(axes, mesh), mesh, one_dim(shuffled, mesh), mesh)
    moved = axes_moved(enumerate(targets), mesh)
    changed = [axis for axis, other in zip(axes, shuffled) if axis != other]
    assert all(any(other.contains(axis) for other in moved) for axis in changed)
    assert bool(moved) == bool(changed)


def test_a_permutation_needs_as_many_holders_as_takers() -> None:
    mesh = Mesh([("a", 6), ("b", 4)])
    before, after = (
        TensorSharding("m", [DimSharding([axis]) for axis in axes])
        for axes in ((AxisRef("b", 1, 2), AxisRef("b", 2, 2)), (AxisRef("a", 1, 2), AxisRef("a", 3, 2)))
    )
    with pytest.raises(InvalidShardingError, match="more holders than receivers"):
        permutation(before, mesh, after, mesh)
