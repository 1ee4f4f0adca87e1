"""Names of compilers, and the devices that they stand for."""

from __future__ import annotations

from importlib.resources import files

import pytest

from pyshardy.compilers.target import chips_of, compiler_name, find_target
from pyshardy.costing.chips import chip_names
from pyshardy.errors import UsageError

DESCRIPTIONS = files("pyshardy.compilers") / "gpus"


@pytest.mark.parametrize(
    "name, devices, topology, slices",
    [
        ("tpu:v5e", 8, "2x4", 1),
        ("tpu:v5e:4x4", 16, "4x4", 1),
        ("tpu:v5e", 512, "16x16", 2),
        ("tpu:v5e:2*2x4", 16, "2x4", 2),
        ("tpu:v6e", 256, "16x16", 1),
        ("tpu:v5p", 8, "2x2x2", 1),
        ("tpu:tpu7x", 8, "2x2x1", 1),
        ("cuda:h100", 8, "1x1x8", 1),
        ("cuda:h100:16", 16, "1x2x8", 1),
        ("cuda:gb200", 16, "1x4x4", 1),
        ("cpu", 6, "6", 1),
        ("cpu:8", 8, "8", 1),
    ],
)
def test_a_name_stands_for_devices(name: str, devices: int, topology: str, slices: int) -> None:
    found = find_target(name, devices)
    assert (found.devices, found.topology, found.slices) == (devices, topology, slices)


def test_devices_in_words() -> None:
    assert str(find_target("tpu:v5e", 512)) == "512 x v5e (2 slices of 16x16)"
    assert str(find_target("cuda:h100", 8)) == "8 x h100"
    assert str(find_target("cpu", 8)) == "8 CPU devices"


@pytest.mark.parametrize("platform", ["tpu", "cuda"])
def test_every_chip_that_is_compiled_for_has_prices_and_a_description(platform: str) -> None:
    for chip in chips_of(platform):
        assert chip in chip_names()
        assert find_target(f"{platform}:{chip}", 8).chip == chip
        assert platform == "tpu" or (DESCRIPTIONS / f"{chip}.txt").read_text()


@pytest.mark.parametrize(
    "name, message",
    [
        ("gpu:h100", "got 'gpu:h100', needed tpu:v5e:2x4, cuda:h100:8 or cpu, or none"),
        ("tpu:v9", "needed tpu:CHIP or tpu:CHIP:TOPOLOGY, where CHIP is one of v4, v5e, v5p, v6e, tpu7x"),
        ("cuda:h10", "where CHIP is one of a100, h100, h200, b200, gb200\n  try: cuda:h100"),
        ("tpu:v5e:8", "got 'tpu:v5e:8', needed a topology, such as tpu:v5e:2x4"),
        ("cuda:h100:2x4", "got 'cuda:h100:2x4', needed a number of GPUs, such as cuda:h100:8"),
        ("cpu:0", "got 'cpu:0', needed cpu, or cpu:8 for eight devices"),
        ("cpu:x", "got 'cpu:x', needed cpu, or cpu:8 for eight devices"),
    ],
)
def test_a_wrong_name_is_refused(name: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        compiler_name(name)
    assert message in str(raised.value)


def test_another_size_than_the_mesh_is_refused() -> None:
    with pytest.raises(UsageError) as raised:
        find_target("tpu:v5e:2x4", 16)
    assert str(raised.value) == (
        "choosing a compiler: got tpu:v5e:2x4, which has 8 devices, needed 16 devices, those of the program's mesh\n"
        "  try: tpu:v5e:4x4"
    )


def test_a_number_of_devices_without_a_topology_is_refused() -> None:
    with pytest.raises(UsageError) as raised:
        find_target("tpu:v5e", 7)
    assert str(raised.value) == (
        "choosing a compiler: got tpu:v5e for 7 devices, needed a number of devices that a slice of v5e has: "
        "1, 4, 8, 16, 32, 64, 128, 256, or a multiple of the last"
    )


def test_no_compiler() -> None:
    assert compiler_name("none") == compiler_name("") == ""
