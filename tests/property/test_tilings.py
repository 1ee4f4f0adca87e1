"""Laws of tilings: what JAX makes of a sharding for GSPMD, read back, lays every tensor out as JAX does."""

from __future__ import annotations

from math import prod
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax._src.sharding_impls import GSPMDSharding
from jax.sharding import NamedSharding, PartitionSpec
from jaxlib import _hlo

from pyshardy.core.boxes import device_boxes
from pyshardy.core.hlo_sharding import HloKind, HloSharding, parse_hlo_shardings
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.tilings import TilingMesh, device_order

MESHES = [{"a": 8}, {"a": 4, "b": 2}, {"a": 2, "b": 4}, {"a": 2, "b": 2, "c": 2}, {"a": 1, "b": 8}, {"a": 2, "b": 3}]
SHAPE = (48, 24, 72)


@st.composite
def programs(draw: st.DrawFn) -> tuple[jax.sharding.Mesh, list[PartitionSpec]]:
    """A mesh, and how a few tensors are sharded over it."""
    axes = draw(st.sampled_from(MESHES))
    devices = np.array(jax.devices()[: prod(axes.values())], dtype=object)
    mesh = jax.sharding.Mesh(devices.reshape(tuple(axes.values())), tuple(axes))
    return mesh, draw(st.lists(specs(list(axes)), min_size=1, max_size=4))


@st.composite
def specs(draw: st.DrawFn, axes: list[str]) -> PartitionSpec:
    used = draw(st.permutations(axes))[: draw(st.integers(0, len(axes)))]
    places = [draw(st.integers(0, len(SHAPE) - 1)) for _ in used]
    return PartitionSpec(
        *(tuple(axis for axis, place in zip(used, places) if place == dim) for dim in range(len(SHAPE)))
    )


def jax_text(sharding: NamedSharding) -> str:
    """The sharding as JAX writes it for GSPMD."""
    found: Any = sharding._to_xla_hlo_sharding(len(SHAPE))
    return str(found)


def read_back(texts: list[str], axes: list[tuple[str, int]] | None = None) -> list[tuple[Mesh, TensorSharding]]:
    read = [parse_hlo_shardings(text)[0] for text in texts]
    tilings = [one for one in read if one.kind is HloKind.TILED]
    found = TilingMesh(axes, device_order(tilings))
    for tiling in tilings:
        found.add(tiling)
    return [(found.mesh(), placed(found, one)) for one in read]


def placed(found: TilingMesh, one: HloSharding) -> TensorSharding:
    if one.kind is HloKind.TILED:
        return found.place(one).sharding
    assert one.kind is HloKind.REPLICATED
    return TensorSharding.fully_replicated(found.mesh(), len(SHAPE))


def jax_boxes(sharding: jax.sharding.Sharding) -> dict[int, list[tuple[int, int]]]:
    return {
        device.id: [index.indices(size)[:2] for index, size in zip(indices, SHAPE)]
        for device, indices in sharding.devices_indices_map(SHAPE).items()
    }


def boxes(mesh: Mesh, sharding: TensorSharding) -> dict[int, list[tuple[int, int]]]:
    return {device: list(zip(box.starts, box.stops)) for device, box in device_boxes(sharding, mesh, SHAPE).items()}


def is_alike(ours: dict[int, list[tuple[int, int]]], theirs: dict[int, list[tuple[int, int]]]) -> bool:
    """Whether every device that JAX uses holds the same; where all is replicated, a mesh need not name devices."""
    whole = [(0, size) for size in SHAPE]
    return all(ours.get(device, whole) == box for device, box in theirs.items())


@given(programs())
def test_tilings_of_jax_read_back_lay_tensors_out_alike(program: tuple[jax.sharding.Mesh, list[PartitionSpec]]) -> None:
    mesh, found = program
    shardings = [NamedSharding(mesh, spec) for spec in found]
    for sharding, (read_mesh, read) in zip(shardings, read_back([jax_text(sharding) for sharding in shardings])):
        assert is_alike(boxes(read_mesh, read), jax_boxes(sharding))


@given(programs(), st.randoms(use_true_random=False))
def test_lists_of_devices_too(program: tuple[jax.sharding.Mesh, list[PartitionSpec]], random: Any) -> None:
    mesh, found = program
    order = list(range(mesh.size))
    random.shuffle(order)
    texts = [listed(jax_text(NamedSharding(mesh, spec)), order) for spec in found]
    for text, (read_mesh, read) in zip(texts, read_back(texts)):
        theirs = GSPMDSharding(list(mesh.devices.flat), _hlo.HloSharding.from_string(text))
        assert is_alike(boxes(read_mesh, read), jax_boxes(theirs))


def listed(text: str, order: list[int]) -> str:
    """A tiling with its devices listed one by one, after giving them other numbers."""
    (read,) = parse_hlo_shardings(text)
    if read.kind is not HloKind.TILED:
        return text
    grid = ",".join(map(str, [*read.tiles, *(size for _, size in read.subgroups)]))
    devices = ",".join(str(order[device]) for device in read.devices)
    return f"{{devices=[{grid}]{devices}{' last_tile_dim_replicate' if read.subgroups else ''}}}"


@given(programs())
def test_on_the_mesh_of_the_user_too(program: tuple[jax.sharding.Mesh, list[PartitionSpec]]) -> None:
    mesh, found = program
    shardings = [NamedSharding(mesh, spec) for spec in found]
    axes = list(mesh.shape.items())
    for sharding, (read_mesh, read) in zip(shardings, read_back([jax_text(one) for one in shardings], axes)):
        assert read_mesh.axes == tuple(axes)
        assert is_alike(boxes(read_mesh, read), jax_boxes(sharding))


def test_another_layout_is_noticed() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("a", "b"))
    right, wrong = NamedSharding(mesh, PartitionSpec("a")), NamedSharding(mesh, PartitionSpec("b"))
    ((read_mesh, read),) = read_back([jax_text(right)])
    assert is_alike(boxes(read_mesh, read), jax_boxes(right))
    assert not is_alike(boxes(read_mesh, read), jax_boxes(wrong))
    assert not is_alike(boxes(read_mesh, read), jax_boxes(NamedSharding(mesh, PartitionSpec(None, "a"))))


@pytest.mark.parametrize("axes", MESHES)
def test_the_mesh_found_is_no_finer_than_needed(axes: dict[str, int]) -> None:
    """Every axis alone, and nothing else: just these axes are found, but for those of size one."""
    count = prod(axes.values())
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:count]).reshape(tuple(axes.values())), tuple(axes))
    texts = [jax_text(NamedSharding(mesh, PartitionSpec(axis))) for axis in axes if axes[axis] > 1]
    assert [size for _, size in read_back(texts)[0][0].axes] == [size for size in axes.values() if size > 1]
