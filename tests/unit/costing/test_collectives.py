"""Times of collectives: the formulas by hand, and published measurements."""

from __future__ import annotations

import statistics

import pytest

from pyshardy.costing.chips import find_hardware
from pyshardy.costing.collectives import CollectiveModel, collective_seconds, network_of
from pyshardy.costing.program import OpTraffic
from pyshardy.costing.topology import Topology, make_topology

MIB = 2**20
ALL_REDUCE = {  # microseconds by size in MiB; stas00/ml-engineering 744d01e18b79, network/README.md, bus bandwidth inverted
    ("a100", 8): {4: 101.5, 16: 276.6, 64: 684.6, 128: 1327.6, 256: 2420.6, 512: 4218.4, 1024: 8203.9, 16384: 127997},
    ("h200", 8): {4: 68.5, 16: 133.5, 64: 338.9, 128: 584.3, 256: 1077.1, 512: 2086.5, 1024: 4053.3, 16384: 62337},
    ("b200", 8): {4: 96.0, 16: 115.2, 64: 293.2, 128: 413.2, 256: 727.1, 512: 1363.6, 1024: 2597.7, 16384: 35547},
    ("b200", 32): {4: 430.0, 16: 504.5, 64: 829.5, 128: 1313.8, 256: 2270.3, 512: 3181.9, 1024: 5746.9, 16384: 87184},
}
TPU_ALL_GATHER = {2: 48.7, 32: 155 * 1.0, 128: 576.0, 512: 2252.0}


def traffic(kind: str, devices: int, size: int, sent: int = 1) -> OpTraffic:
    before = size // devices if kind == "all_gather" else size
    after = size // devices if kind == "reduce_scatter" else size
    return OpTraffic(kind, "mesh", (("x", devices),), devices, before, after, sent)


def seconds(chip: str, kind: str, devices: int, size: int, model: str = "formula") -> float:
    topology = make_topology(find_hardware(chip), (("x", devices),))
    return collective_seconds(traffic(kind, devices, size), topology, CollectiveModel(model))


def errors() -> list[float]:
    return [
        abs(seconds(chip, "all_reduce", devices, size * MIB) * 1e6 / wanted - 1)
        for (chip, devices), row in ALL_REDUCE.items()
        for size, wanted in row.items()
    ]


def test_formulas_are_near_published_measurements() -> None:
    assert statistics.median(errors()) <= 0.15


def test_a_wrong_model_is_seen() -> None:
    wrong = [
        abs(2 * seconds(chip, "all_reduce", devices, size * MIB) * 1e6 / wanted - 1)
        for (chip, devices), row in ALL_REDUCE.items()
        for size, wanted in row.items()
    ]
    assert statistics.median(wrong) > 0.5


def test_measurements_are_met_where_there_are_some() -> None:
    assert seconds("a100", "all_reduce", 8, 64 * MIB, "measured") == pytest.approx(684.6e-6, rel=1e-3)
    assert seconds("h100", "all_gather", 8, 512 * 10**6, "measured") == pytest.approx(30e-6 + 512e6 / 394e9, rel=0.01)
    # nothing was measured for all-to-all: the formula
    assert seconds("h100", "all_to_all", 8, 64 * MIB, "measured") == seconds("h100", "all_to_all", 8, 64 * MIB)


def test_four_chips_of_a_torus() -> None:
    found = seconds("tpu7x", "all_gather", 4, 512 * MIB)
    assert found == pytest.approx(2252e-6, rel=0.05)


def test_closed_axes_send_both_ways() -> None:
    chip = find_hardware("v5e")
    network = chip.networks[0]
    found = seconds("v5e", "all_gather", 16, 64 * MIB) - chip.launch_s
    # 16 devices are a torus of 4 x 4 here, with two lines, not rings
    assert found == pytest.approx(64 * MIB * 15 / 16 / (2 * network.bytes_per_s * network.efficiency))
    ring = make_topology(chip, (("x", 16),), shape=(16,))
    found = collective_seconds(traffic("all_gather", 16, 64 * MIB), ring, CollectiveModel.FORMULA) - chip.launch_s
    assert found == pytest.approx(64 * MIB * 15 / 16 / (2 * network.bytes_per_s * network.efficiency))


def test_small_messages_are_latency() -> None:
    for kind in ("all_gather", "all_reduce", "all_to_all", "collective_permute"):
        small, smaller = (seconds("h100", kind, 8, size) for size in (4096, 1024))
        assert small == pytest.approx(smaller, rel=0.2) and small > 5e-6


def test_all_reduce_is_two_gathers_on_a_torus() -> None:
    launch = find_hardware("v5p").launch_s
    once = seconds("v5p", "all_gather", 8, 256 * MIB) - launch
    assert seconds("v5p", "all_reduce", 8, 256 * MIB) - launch == pytest.approx(2 * once)
    assert seconds("v5p", "reduce_scatter", 8, 256 * MIB) - launch == pytest.approx(once)


def test_across_nodes_it_takes_longer() -> None:
    inside, outside = (seconds("h100", "all_gather", devices, 256 * MIB) for devices in (8, 16))
    assert outside > inside
    topology = make_topology(find_hardware("h100"), (("x", 16),))
    assert network_of(traffic("all_gather", 16, MIB), topology) == 1


def test_alone_or_with_nothing_to_send_there_is_nothing_to_wait_for() -> None:
    topology: Topology = make_topology(find_hardware("h100"), (("x", 8),))
    for model in CollectiveModel:
        assert collective_seconds(traffic("all_gather", 8, MIB, sent=0), topology, model) == 0
        assert collective_seconds(OpTraffic("all_reduce", "m", (("x", 1),), 1, 8, 8, 1), topology, model) == 0


def test_the_form_of_xla_counts_rounds() -> None:
    once, twice = (seconds("h100", kind, 16, 64 * MIB, "xla") for kind in ("all_gather", "all_reduce"))
    assert 1.5 < twice / once < 2.0
