"""Laws of dimension and tensor shardings: copies, opening and closing, equivalence, common meshes, checks."""

from __future__ import annotations

import copy
import pickle
from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pyshardy.core.axes import AxisRef
from pyshardy.core.axis_lists import axes_size, ordered_refs, subtract_axes
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding, is_equivalent, is_unsharded
from pyshardy.core.sharding_on_mesh import check_sharding, common_mesh, shard_counts
from pyshardy.errors import InvalidShardingError

from .strategies import dim_shardings, meshes, on_a_mesh, pieces, tensor_shardings

DIMS = on_a_mesh(dim_shardings)
SHARDINGS = on_a_mesh(tensor_shardings, meshes())
PAIRS = on_a_mesh(lambda mesh: st.tuples(tensor_shardings(mesh), tensor_shardings(mesh)))


@given(SHARDINGS)
def test_drawn_shardings_fit_their_mesh(drawn: tuple[Mesh, TensorSharding]) -> None:
    mesh, sharding = drawn
    check_sharding(sharding, mesh, sharding.rank)


@given(SHARDINGS)
def test_copies_are_the_sharding(drawn: tuple[Mesh, TensorSharding]) -> None:
    mesh, sharding = drawn
    for value in (mesh, sharding, *sharding.dims, *sharding.all_axes()):
        assert pickle.loads(pickle.dumps(value)) is copy.deepcopy(value) is copy.copy(value) is value


@given(DIMS)
def test_opening_and_closing_a_dimension(drawn: tuple[Mesh, DimSharding]) -> None:
    _, dim = drawn
    opened = dim.opened()
    assert opened.is_open and opened.opened() is opened
    assert (opened.axes, opened.priority) == (dim.axes, dim.priority)
    assert dim.without_priority().without_priority() is dim.without_priority()
    if dim.axes or dim.priority is None:
        assert not dim.closed().is_open
        assert opened.closed() is dim.closed()
        assert dim.closed().opened() is opened


@given(SHARDINGS)
def test_opening_and_closing_a_tensor(drawn: tuple[Mesh, TensorSharding]) -> None:
    _, sharding = drawn
    assert sharding.opened().opened() is sharding.opened()
    assert is_equivalent(sharding.opened(), sharding)
    assert (sharding.opened().replicated, sharding.opened().unreduced) == (sharding.replicated, sharding.unreduced)
    sharding = sharding.map_dims(DimSharding.without_priority)
    closed = sharding.closed()
    assert closed.is_fully_closed and closed.closed() is closed
    assert closed.replicated == ()
    assert is_equivalent(closed, sharding)


@given(SHARDINGS)
def test_fields_put_back_give_the_sharding(drawn: tuple[Mesh, TensorSharding]) -> None:
    _, sharding = drawn
    assert sharding.with_mesh("other").with_mesh(sharding.mesh) is sharding
    assert sharding.with_dims(()).with_dims(sharding.dims) is sharding
    assert sharding.with_replicated(()).with_replicated(sharding.replicated) is sharding
    assert sharding.with_unreduced(()).with_unreduced(sharding.unreduced) is sharding
    assert sharding.map_dims(lambda dim: dim) is sharding


@given(SHARDINGS)
def test_shard_counts_divide_the_mesh(drawn: tuple[Mesh, TensorSharding]) -> None:
    mesh, sharding = drawn
    assert mesh.size % axes_size(sharding.all_axes(), mesh) == 0
    counts = shard_counts(sharding, mesh)
    assert counts == tuple(axes_size(dim.axes, mesh) for dim in sharding.dims)
    assert sharding.is_fully_replicated is (not any(sharding.dim_axes))
    whole = tuple(map(AxisRef, mesh.axis_names))
    left = subtract_axes(whole, tuple(sharding.all_axes()), mesh)
    assert axes_size(left, mesh) * axes_size(sharding.all_axes(), mesh) == mesh.size


@given(PAIRS)
def test_equivalence_is_symmetric(drawn: tuple[Mesh, tuple[TensorSharding, TensorSharding]]) -> None:
    _, (first, second) = drawn
    for ignore in (False, True):
        assert is_equivalent(first, first, ignore)
        assert is_equivalent(first, second, ignore) is is_equivalent(second, first, ignore)
        assert is_equivalent(first, None, ignore) is is_unsharded(first, ignore)
    if is_equivalent(first, second):
        assert is_equivalent(first, second, ignore_unreduced=True)


@given(SHARDINGS, st.data())
def test_equivalence_sees_axes_alone(drawn: tuple[Mesh, TensorSharding], data: st.DataObject) -> None:
    mesh, sharding = drawn
    redrawn = [DimSharding(dim.axes, data.draw(st.booleans()), None) for dim in sharding.dims]
    other = sharding.with_dims(redrawn).with_replicated(())
    assert is_equivalent(sharding, other) and is_equivalent(other, sharding)
    if any(sharding.dim_axes):
        assert not is_equivalent(sharding, other.with_dims([*other.dims, DimSharding()]))
        assert not is_equivalent(sharding, other.with_mesh(mesh))
        assert not is_equivalent(sharding, other.map_dims(lambda dim: DimSharding()))
    if sharding.unreduced:
        assert not is_equivalent(sharding, other.with_unreduced(()))
        assert is_equivalent(sharding, other.with_unreduced(()), ignore_unreduced=True)


@given(on_a_mesh(pieces), st.data())
def test_an_axis_used_twice_is_refused(drawn: tuple[Mesh, tuple[AxisRef, ...]], data: st.DataObject) -> None:
    mesh, cut = drawn
    axis = data.draw(st.sampled_from(cut))
    whole = AxisRef(axis.name)
    for other in (axis, whole):
        with pytest.raises(InvalidShardingError, match="twice|the full axis"):
            TensorSharding("mesh", [DimSharding([axis])], [other])
        with pytest.raises(InvalidShardingError, match="twice|the full axis"):
            DimSharding([axis, other])


@given(SHARDINGS)
def test_another_rank_is_refused(drawn: tuple[Mesh, TensorSharding]) -> None:
    mesh, sharding = drawn
    assume(not mesh.is_single_device)
    with pytest.raises(InvalidShardingError, match=f"got {sharding.rank} dimensions, needed {sharding.rank + 1}"):
        check_sharding(sharding, mesh, sharding.rank + 1)


@given(SHARDINGS)
def test_replicated_and_unreduced_axes_out_of_order_are_refused(drawn: tuple[Mesh, TensorSharding]) -> None:
    mesh, sharding = drawn
    for kind, changed in (
        ("replicated", sharding.with_replicated(sharding.replicated[::-1])),
        ("unreduced", sharding.with_unreduced(sharding.unreduced[::-1])),
    ):
        if changed is sharding:
            continue
        with pytest.raises(InvalidShardingError, match=f"got {kind} axes .*, needed the order of the mesh|consecutive"):
            check_sharding(changed, mesh, sharding.rank)


MESHES = {
    "first": Mesh([("x", 2), ("y", 2)]),
    "again": Mesh([("x", 2), ("y", 2)]),
    "turned": Mesh([("x", 2), ("y", 2)], [3, 2, 1, 0]),
    "other": Mesh([("x", 4)]),
    "empty": Mesh([]),
    "device": Mesh([], [0]),
}
references = st.none() | st.sampled_from([*MESHES, Mesh([("x", 2), ("y", 2)]), Mesh([])]).map(TensorSharding)


@given(st.lists(references, max_size=5), st.booleans())
def test_the_common_mesh_agrees_with_all(shardings: list[TensorSharding | None], ignore: bool) -> None:
    found = common_mesh(shardings, MESHES, ignore)
    meshes = [
        MESHES[sharding.mesh] if isinstance(sharding.mesh, str) else sharding.mesh
        for sharding in shardings
        if sharding is not None
    ]
    full = [mesh for mesh in meshes if not mesh.is_empty]
    agree = all(mesh is full[0] or (ignore and mesh.same_axes(full[0])) for mesh in full)
    assert (found is not None) is (bool(meshes) and agree)
    if found is not None:
        ref, mesh = found
        assert (MESHES[ref] if isinstance(ref, str) else ref) is mesh
        assert ref in [sharding.mesh for sharding in shardings if sharding is not None]
        assert mesh in (full or meshes)
        assert mesh.device_ids is None or all(other.device_ids is not None for other in full)


@given(st.lists(references, max_size=5))
def test_absent_shardings_and_repetitions_do_not_matter(shardings: list[TensorSharding | None]) -> None:
    found = common_mesh(shardings, MESHES)
    assert common_mesh([None, *shardings, None], MESHES) == found
    if found is not None and not found[1].is_empty:
        assert common_mesh([*shardings, *shardings], MESHES) == found
        assert common_mesh([*shardings, TensorSharding("empty")], MESHES) == found


@given(SHARDINGS)
def test_all_axes_are_told_apart(drawn: tuple[Mesh, TensorSharding]) -> None:
    mesh, sharding = drawn
    axes = sharding.all_axes()
    assert max(Counter(axes).values(), default=1) == 1
    parts = ordered_refs(mesh, axes)
    assert all(sum(axis.contains(part) for axis in axes) <= 1 for part in parts)
