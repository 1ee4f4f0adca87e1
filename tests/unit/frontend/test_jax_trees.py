"""Shardings as trees over arguments and results, with devices and without, with sub-axes and without."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.core.boxes import device_boxes
from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.core.sharding import TensorSharding
from pyshardy.errors import InvalidShardingError, UsageError
from pyshardy.frontend.annotate import as_spec
from pyshardy.frontend.interface import InterfaceTensor
from pyshardy.frontend.jax_shardings import NamedShardings, SubAxes, partition_spec, whole_axes

from ...property.strategies import meshes, on_a_mesh, tensor_shardings

TEXT = """sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}, {"y", "x":(2)2}]>} loc("w"))
    -> tensor<8x8xf32> {
  return %a : tensor<8x8xf32>
}"""


@pytest.fixture(scope="module")
def result() -> pyshardy.Propagation:
    return pyshardy.propagate(pyshardy.load(TEXT))


def test_sub_axes_are_refused(result: pyshardy.Propagation) -> None:
    for find in (lambda: result.in_specs, lambda: result.in_shardings):
        with pytest.raises(
            InvalidShardingError, match=r'(?s)of w: got the sub-axis "x":\(1\)2.*try: .* with sub_axes="split"'
        ):
            find()


def test_sub_axes_on_a_mesh_of_cut_axes_place_real_data(result: pyshardy.Propagation) -> None:
    (sharding,) = result.input_shardings(sub_axes="split")
    assert sharding.mesh.shape_tuple == (("x:(1)2", 2), ("x:(2)2", 2), ("y", 2))
    assert sharding.spec == P("x:(1)2", ("y", "x:(2)2"))
    values = np.arange(64, dtype=np.float32).reshape(8, 8)
    placed = jax.device_put(values, sharding)
    boxes = device_boxes(result.inputs[0].sharding, result.meshes["mesh"], (8, 8))
    for shard in placed.addressable_shards:
        box = boxes[shard.device.id]
        np.testing.assert_array_equal(shard.data, values[tuple(map(slice, box.starts, box.stops))])


def test_sub_axes_may_be_gathered(result: pyshardy.Propagation) -> None:
    (sharding,) = result.input_shardings(sub_axes="gather")
    assert sharding.spec == P(None, "y")
    (without,) = result.input_shardings("abstract", "gather")
    assert without == NamedSharding(AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2), P(None, "y"))


def test_options_that_are_none(result: pyshardy.Propagation) -> None:
    with pytest.raises(UsageError, match="converting sub-axes: got 'drop', needed one of 'refuse', 'split', 'gather'"):
        result.input_shardings(sub_axes="drop")
    with pytest.raises(UsageError, match="choosing devices: got 'tpu', needed devices, or \"abstract\""):
        result.input_shardings(devices="tpu")


def test_devices_of_the_users_choice(result: pyshardy.Propagation) -> None:
    devices = jax.devices()[::-1]
    (sharding,) = result.output_shardings(devices, "gather")
    assert list(sharding.mesh.devices.flat) == devices


def test_explicit_axes_stay_explicit() -> None:
    mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    argument = jax.ShapeDtypeStruct((8, 8), np.float32, sharding=NamedSharding(mesh, P("x")))
    result = pyshardy.propagate(pyshardy.load(lambda x: jnp.tanh(x), argument))
    assert result.in_shardings[0].mesh is mesh
    assert result.out_shardings.mesh is mesh


def test_shardings_without_devices_are_fit_for_jit() -> None:
    def loss(params, x):
        return jnp.tanh(x @ params["w"])

    args = {"w": jax.ShapeDtypeStruct((8, 8), np.float32)}, jax.ShapeDtypeStruct((8, 8), np.float32)
    mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    result = pyshardy.propagate(pyshardy.load(loss, *args, mesh=mesh, in_shardings=({"w": P(None, "y")}, P("x"))))
    again = pyshardy.load(loss, *args, in_shardings=result.in_shardings, out_shardings=result.out_shardings)
    found = pyshardy.propagate(again)
    assert (found.in_specs, found.out_specs) == (result.in_specs, result.out_specs)
    assert (found.in_shardings, found.out_shardings) == (result.in_shardings, result.out_shardings)
    real = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    ones = np.ones((8, 8), np.float32)
    with jax.set_mesh(real):
        jitted = jax.jit(loss, in_shardings=result.in_specs, out_shardings=result.out_specs)
        assert jitted({"w": ones}, ones).sharding.spec == P("x", "y")


# Laws


def tensor(sharding: TensorSharding) -> InterfaceTensor:
    return InterfaceTensor("p", 0, (96,) * sharding.rank, "f32", sharding)


@given(on_a_mesh(tensor_shardings, meshes(min_axes=1, max_axes=2)))
def test_cut_axes_lay_a_tensor_out_alike(drawn: tuple[Mesh, TensorSharding]) -> None:
    mesh, sharding = drawn
    assume(mesh.size <= 8)
    converter = NamedShardings({"mesh": mesh}, sub_axes=SubAxes.SPLIT)
    if sharding.unreduced:
        with pytest.raises(InvalidShardingError, match="converting the sharding"):
            converter.of(tensor(sharding))
        return
    shape = (96,) * sharding.rank
    assert positions(converter.of(tensor(sharding)), shape) == starts_and_stops(sharding, mesh, shape)


def positions(named: NamedSharding, shape: tuple[int, ...]) -> dict[int, list[tuple[int, int]]]:
    """What every device holds, as JAX says."""
    return {
        device.id: [index.indices(size)[:2] for index, size in zip(indices, shape)]
        for device, indices in named.devices_indices_map(shape).items()
    }


def starts_and_stops(sharding: TensorSharding, mesh: Mesh, shape: tuple[int, ...]) -> dict[int, list[tuple[int, int]]]:
    """The same as pyshardy says."""
    boxes = device_boxes(sharding, mesh, shape)
    return {device: list(zip(box.starts, box.stops)) for device, box in boxes.items()}


@given(on_a_mesh(tensor_shardings))
def test_gathered_shards_hold_at_least_what_they_held(drawn: tuple[Mesh, TensorSharding]) -> None:
    mesh, sharding = drawn
    if any(not axis.is_full for axis in sharding.unreduced):
        with pytest.raises(InvalidShardingError, match="unreduced on one"):
            whole_axes(sharding)
        return
    whole = whole_axes(sharding)
    assert whole_axes(whole) is whole
    shape = (96,) * sharding.rank
    before, after = (starts_and_stops(one, mesh, shape) for one in (sharding, whole))
    for device, bounds in before.items():
        assert all(new[0] <= old[0] and old[1] <= new[1] for old, new in zip(bounds, after[device]))


@given(on_a_mesh(tensor_shardings))
def test_specs_there_and_back(drawn: tuple[Mesh, TensorSharding]) -> None:
    _, sharding = drawn
    axes = [*(axis for dim in sharding.dims for axis in dim.axes), *sharding.unreduced]
    if not all(axis.is_full for axis in axes) or (sharding.unreduced and sharding.reduction.value != "sum"):
        with pytest.raises(InvalidShardingError, match="converting the sharding"):
            partition_spec(sharding, sharding.rank)
        return
    back = as_spec(partition_spec(sharding, sharding.rank)).sharding(sharding.mesh, sharding.rank)
    assert back.dim_axes == sharding.dim_axes
    assert set(back.unreduced) == set(sharding.unreduced)


def test_the_comparison_notices_another_layout() -> None:
    mesh = Mesh([("x", 4)])
    one, other = (parse_sharding(f"<@mesh, [{dims}]>") for dims in ('{"x"}', '{"x":(1)2}'))
    assert starts_and_stops(one, mesh, (8,)) != starts_and_stops(other, mesh, (8,))
    named = NamedShardings({"mesh": mesh}).of(tensor(one))
    assert positions(named, (8,)) != starts_and_stops(other, mesh, (8,))
