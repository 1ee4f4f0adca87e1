"""Meshes of so many devices that nothing may be made for each of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import pyshardy
from pyshardy.core.axes import AxisRef
from pyshardy.core.devices import replica_groups, shard_indices
from pyshardy.core.mesh import MOST_DEVICES, Mesh, check_count
from pyshardy.errors import InvalidShardingError, ShardyError
from pyshardy.reshard.halo import Window, halo_of, is_free_pad
from pyshardy.reshard.reversal import reversed_mesh
from support.reference import jaxlib_version

needs_newest = pytest.mark.skipif(jaxlib_version() < (0, 12), reason="older StableHLO has no groups along axes")
SIZES = [MOST_DEVICES + 1, 2**26, 2**31 - 1, 2**31, 2**58]
TOO_MANY = "needed at most 1048576, as something is made for each of them"


def program(size: int, body: str, inputs: str = "", result: str = "") -> str:
    """A program on a tensor of so many rows, sharded by an axis of that size."""
    sharded = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}'
    tensor = f"tensor<{size}xf32>"
    return f"""sdy.mesh @mesh = <["x"={size}]>
    func.func @main(%a: {tensor} {inputs or sharded}) -> (RESULT {result}) {{
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      {body}
    }}""".replace("TENSOR", tensor)


def pointwise(size: int) -> str:
    body = "%0 = stablehlo.abs %a : TENSOR\nreturn %0 : TENSOR"
    return program(size, body).replace("RESULT", f"tensor<{size}xf32>")


def summed(size: int) -> str:
    body = """%0 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0]
      : (TENSOR, tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>"""
    return program(size, body).replace("RESULT", "tensor<f32>")


def cut(size: int) -> str:
    sharded = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}'
    whole = "{sdy.sharding = #sdy.sharding<@mesh, [{}]>}"
    return program(size, "return %a : TENSOR", whole, sharded).replace("RESULT", f"tensor<{size}xf32>")


def padded(size: int) -> str:
    body = """%0 = stablehlo.pad %a, %zero, low = [1], high = [-1], interior = [0] : (TENSOR, tensor<f32>) -> TENSOR
      return %0 : TENSOR"""
    return program(size, body).replace("RESULT", f"tensor<{size}xf32>")


def reversed_(size: int) -> str:
    body = "%0 = stablehlo.reverse %a, dims = [0] : TENSOR\nreturn %0 : TENSOR"
    return program(size, body).replace("RESULT", f"tensor<{size}xf32>")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("make", [pointwise, summed, cut, padded, reversed_])
def test_propagation_takes_any_mesh(make: Callable[[int], str], size: int) -> None:
    found = pyshardy.propagate(pyshardy.load(make(size)))
    assert f"on {size} devices: x={size}" in str(found)
    sharding = found.outputs[0].sharding
    assert make is summed or str(sharding) == '<@mesh, [{"x"}]>'


@pytest.mark.parametrize("size", SIZES)
def test_what_makes_nothing_per_device_is_partitioned(size: int) -> None:
    found = pyshardy.partition(pyshardy.load(pointwise(size)))
    assert (found.device_count, found.traffic.collectives) == (size, ())


@needs_newest
@pytest.mark.parametrize("mesh_axes_groups", [None, True])
@pytest.mark.parametrize("size", SIZES)
def test_groups_along_axes_are_no_list(mesh_axes_groups: bool | None, size: int) -> None:
    options = pyshardy.PartitionOptions(mesh_axes_groups=mesh_axes_groups)
    found = pyshardy.partition(pyshardy.load(summed(size)), options)
    (row,) = found.traffic.collectives
    assert (row.axes, row.group_size) == (('"x"',), size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("make", [summed, cut, padded, reversed_])
def test_what_makes_something_per_device_is_refused_at_once(make: Callable[[int], str], size: int) -> None:
    with pytest.raises(ShardyError) as caught:
        pyshardy.partition(pyshardy.load(make(size)), pyshardy.PartitionOptions(mesh_axes_groups=False))
    assert TOO_MANY in str(caught.value)
    assert f"got {size} " in str(caught.value)
    assert "--mesh-axes-groups" in str(caught.value)


@pytest.mark.parametrize("size", [2**31, 2**45, 2**62])
def test_devices_without_a_number_are_refused(size: int) -> None:
    """A slice that every device computes from its own shard: only its number is needed."""
    body = "%0 = stablehlo.slice %a [1:8] : (tensor<8xf32>) -> tensor<7xf32>\nreturn %0 : tensor<7xf32>"
    text = program(size, body).replace(f"tensor<{size}xf32>", "tensor<8xf32>").replace("RESULT", "tensor<7xf32>")
    with pytest.raises(ShardyError, match=f"got {size} devices, needed at most"):
        pyshardy.partition(pyshardy.load(text))


@needs_newest
def test_the_program_of_one_device_does_not_grow_with_their_number() -> None:
    few, many = (pyshardy.partition(pyshardy.load(summed(size))).module.text() for size in (8, 2**31))
    assert many.replace(str(2**31), "8") == few


@pytest.mark.slow
def test_as_many_as_there_may_be_are_listed() -> None:
    mesh = Mesh([("x", MOST_DEVICES // 2), ("y", 2)])
    assert shard_indices((AxisRef("y"),), mesh)[-4:] == (0, 1, 0, 1)
    groups = replica_groups((AxisRef("y"),), mesh)
    assert (len(groups), groups[-1]) == (MOST_DEVICES // 2, (MOST_DEVICES - 2, MOST_DEVICES - 1))
    assert reversed_mesh(mesh, [AxisRef("x")]).device_order[:3] == (
        MOST_DEVICES - 2,
        MOST_DEVICES - 1,
        MOST_DEVICES - 4,
    )


def test_one_more_is_refused() -> None:
    mesh = Mesh([("x", MOST_DEVICES + 1)])
    for list_devices in (
        lambda: mesh.device_order,
        lambda: shard_indices((AxisRef("x"),), mesh),
        lambda: replica_groups((AxisRef("x"),), mesh),
        lambda: reversed_mesh(mesh, [AxisRef("x")]),
        lambda: halo_of(Window(MOST_DEVICES + 1, MOST_DEVICES + 1, MOST_DEVICES + 1, low=3)),
        lambda: is_free_pad(10, 12, 1, 0, MOST_DEVICES + 1),
    ):
        with pytest.raises(InvalidShardingError, match=TOO_MANY):
            list_devices()


def test_the_whole_message() -> None:
    check_count(MOST_DEVICES, "listing devices", "devices")
    with pytest.raises(InvalidShardingError) as caught:
        check_count(MOST_DEVICES + 1, "listing devices", "devices")
    assert str(caught.value) == (
        f"listing devices: got 1048577 devices, {TOO_MANY}\n"
        "  try: a smaller mesh; groups of devices as axes of a mesh (--mesh-axes-groups) need no list"
    )
