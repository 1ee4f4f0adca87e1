"""The meshes of so many devices, and where their axes lie."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest

import pyshardy
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.topology import make_topology
from pyshardy.searching.planning.meshes import MOST_MODEL, meshes_of, placement

H100 = find_hardware("h100")


@pytest.mark.parametrize("devices", [1, 4, 8, 12, 24, 64, 256])
def test_every_mesh_has_all_devices_and_none_is_there_twice(devices: int) -> None:
    found = meshes_of(devices, H100)
    assert all(prod(mesh.values()) == devices for mesh in found)
    assert len({tuple(mesh.items()) for mesh in found}) == len(found)
    assert max(mesh.get("model", 1) for mesh in found) <= MOST_MODEL


def test_an_axis_goes_from_node_to_node_where_there_are_several() -> None:
    assert not any("fsdp" in mesh for mesh in meshes_of(8, H100))
    assert not any("fsdp" in mesh for mesh in meshes_of(12, H100))  # one node and a half
    across = [mesh for mesh in meshes_of(32, H100) if "fsdp" in mesh]
    assert across and all(mesh["data"] == 4 for mesh in across)


def test_slices_of_tpus_are_nodes() -> None:
    chip = find_hardware("v5e")
    inner = chip.networks[0].devices
    assert inner is not None
    assert {"data": 2, "fsdp": inner} in meshes_of(2 * inner, chip)
    assert not any("fsdp" in mesh for mesh in meshes_of(inner, chip))


def test_where_there_is_one_network_nothing_is_said() -> None:
    only = replace(H100, networks=H100.networks[1:])
    assert placement(make_topology(only, (("data", 64),))) == ""
    assert placement(make_topology(H100, (("data", 1), ("model", 16)))).startswith('"model" lies on nvlink')


TEXT = """
func.func @main(%x: tensor<4096x1024xbf16>, %w: tensor<1024x4096xbf16>) -> tensor<4096x4096xbf16> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<4096x1024xbf16>, tensor<1024x4096xbf16>) -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}"""


def test_a_plan_says_where_its_axes_lie() -> None:
    plan = pyshardy.search(TEXT, hardware="h100", devices=16, budget_s=20)
    assert prod(plan.mesh.values()) == 16
    assert any("lies on" in note and "the network (50 GB/s" in note for note in plan.notes)
