"""Chips, topologies, and what is refused."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyshardy.costing.chips import chip_names, chip_text, find_hardware
from pyshardy.costing.hardware import Hardware, Measured, Network
from pyshardy.costing.hardware_file import hardware_from_data
from pyshardy.costing.topology import make_topology
from pyshardy.errors import UsageError


def numbers(table: dict[str, Any], prefix: str = "") -> list[str]:
    found = []
    for name, value in table.items():
        if name == "networks":
            found += [entry for network in value for entry in numbers(network, f"networks.{network['name']}.")]
        elif isinstance(value, dict) and name != "sources":
            found += numbers(value, f"{prefix}{name}.")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            found.append(prefix + name)
    return found


@pytest.mark.parametrize("chip", chip_names())
def test_every_number_of_a_chip_has_a_source(chip: str) -> None:
    data = tomllib.loads(chip_text(chip))
    sources = dict(find_hardware(chip).sources)
    derived = {f"networks.{name}" for name in ("ici.dims", "nvlink.devices", "ici.devices")}
    assert {name for name in numbers(data) if name not in sources} - derived == set()
    assert not find_hardware(chip).measured or "measured" in sources


def test_there_are_the_chips_of_the_issue() -> None:
    assert {"a100", "b200", "gb200", "h100", "tpu7x", "v5e", "v5p", "v6e"} <= set(chip_names())


def test_the_page_lists_all_chips() -> None:
    page = (Path(__file__).parents[3] / "docs" / "cost.md").read_text()
    listed = page.partition("Each chip is a TOML file")[2].partition(". For a chip of your own")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == set(chip_names())


def test_an_unknown_chip_is_refused() -> None:
    with pytest.raises(UsageError, match="looking up hardware: got 'h1000', needed one of a100.*\n  try: h100$"):
        find_hardware("h1000")


@pytest.mark.parametrize(
    "line, put, message",
    [
        ("memory_bytes = 80000000000.0", "", "memory_bytes"),
        ("memory_bytes = 80000000000.0", "memory_bytes = -1", "memory_bytes = -1"),
        ("memory_bytes = 80000000000.0", 'memory_bytes = "80"', "memory_bytes = '80'"),
        ('kind = "switch"', 'kind = "bus"', "the kind 'bus'"),
        ("efficiency = 0.82", "efficiency = 1.5", "efficiency = 1.5"),
        ("launch_s = 6e-6", "speed = 3", "speed"),
        ("devices = 8", "", "without a number of devices"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, line: str, put: str, message: str) -> None:
    text = chip_text("h100")
    assert line in text
    path = tmp_path / "mine.toml"
    path.write_text(text)
    assert find_hardware(path).name == "NVIDIA H100 SXM"
    path.write_text(text.replace(line, put, 1))
    with pytest.raises(UsageError, match="reading a hardware file") as found:
        find_hardware(path)
    assert message in str(found.value) and "mine.toml" in str(found.value)


def test_files_that_are_not_there_or_no_toml(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="reading a hardware file"):
        find_hardware(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("= 3")
    with pytest.raises(UsageError, match="needed TOML"):
        find_hardware(tmp_path / "bad.toml")
    with pytest.raises(UsageError, match="needed a table"):
        hardware_from_data({"networks": [3]}, "data")


WRONG = (None, True, 3, -1, 1.5, float("nan"), "x", [], [3], [[1]], {}, {"a": 1})


def places(data: Any) -> Iterator[tuple[Any, ...]]:
    """The keys that lead to each value inside of tables, but for the sources of numbers."""
    for key in data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
        yield (key,)
        if key != "sources":
            yield from ((key, *rest) for rest in places(data[key]))


@pytest.mark.slow_cases("h100")
@pytest.mark.parametrize("chip", ["h100", "v5p"])
def test_a_table_with_a_wrong_value_is_refused_or_works(chip: str) -> None:
    data = tomllib.loads(chip_text(chip))
    refused = 0
    for place in places(data):
        for value in WRONG:
            given = inner = copy.deepcopy(data)
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = value
            try:
                found = hardware_from_data(given, "the table")
            except UsageError as error:
                refused += 1
                assert error.doing == "reading a hardware file"
            else:
                assert make_topology(found, (("x", 2),), None, None).describe()
    assert refused > 200


def test_hardware_takes_lists_and_a_mapping_of_rates() -> None:
    network = Network("bus", "switch", 1e9)
    found = Hardware("mine", 1e9, 1e9, {"bf16": 1e12}, [network])  # type: ignore[arg-type]
    assert (found.flops_per_s, found.networks) == ((("bf16", 1e12),), (network,))
    assert hash(found) == hash(Hardware("mine", 1e9, 1e9, (("bf16", 1e12),), (network,)))


def test_a_type_that_is_not_listed_goes_at_the_rate_of_its_width() -> None:
    h100 = find_hardware("h100")
    assert h100.matrix_flops_per_s("f16") == h100.matrix_flops_per_s("bf16") == 9.9e14
    assert h100.matrix_flops_per_s("f64") == 4.95e14 / 2
    assert h100.matrix_flops_per_s("i1") == 1.98e15


def test_measurements_are_interpolated() -> None:
    entry = Measured("all_gather", 8, (1e6, 4e6), (1e-4, 4e-4))
    assert entry.at(2e6) == pytest.approx(2e-4)
    assert (entry.at(1), entry.at(8e6)) == (1e-4, pytest.approx(8e-4))
    with pytest.raises(UsageError, match="two or more"):
        Measured("all_gather", 8, (1e6,), (1e-4,))
    with pytest.raises(UsageError, match="sizes in ascending order"):
        Measured("all_gather", 8, (4e6, 1e6), (1e-4, 1e-4))


LAID = [
    ("v5e", (("data", 16), ("model", 16)), None, None, {"data": "ici 16 ring", "model": "ici 16 ring"}),
    ("v5e", (("data", 2), ("model", 4)), None, None, {"data": "ici 2", "model": "ici 4"}),
    ("v5p", (("data", 64), ("model", 8)), None, None, {"data": "ici 8 ring, ici 8 ring", "model": "ici 8 ring"}),
    ("v5e", (("slice", 4), ("fsdp", 256)), None, None, {"slice": "dcn 4", "fsdp": "ici 16 ring, ici 16 ring"}),
    ("v5p", (("data", 4), ("model", 4)), None, (4, 4), {"data": "ici 4 ring", "model": "ici 4 ring"}),
    ("v6e", (("data", 8), ("model", 4)), {"data": "dcn"}, None, {"data": "dcn 8", "model": "ici 2, ici 2"}),
    ("h100", (("data", 4), ("model", 4)), None, None, {"data": "nvlink 2, network 2", "model": "nvlink 4"}),
    ("h100", (("x", 1),), None, None, {"x": "one device"}),
    ("gb200", (("x", 72),), None, None, {"x": "nvlink 72"}),
]


@pytest.mark.parametrize("chip, axes, networks, shape, wanted", LAID)
def test_axes_are_laid_from_the_inside_out(chip: str, axes: Any, networks: Any, shape: Any, wanted: Any) -> None:
    assert make_topology(find_hardware(chip), axes, networks, shape).describe() == wanted


@pytest.mark.parametrize(
    "chip, axes, networks, shape, message",
    [
        ("h100", (("x", 8),), {"y": "nvlink"}, None, "a network for the axis 'y'"),
        ("h100", (("x", 8),), {"x": "ici"}, None, "the network 'ici'"),
        ("h100", (("x", 8),), None, (2, 4), "a chip with a torus"),
        ("h100", (("x", 16),), {"x": "nvlink"}, None, "x=16"),
        ("v5e", (("x", 8),), None, (3, 3), "the shape 3x3"),
        ("v5e", (("x", 8),), None, (2, 2, 2), "at most 2 dimensions"),
        ("v5e", (("x", 1024),), None, (32, 32), "at most 256 devices"),
        ("v5e", (("x", 0),), None, None, "x=0"),
    ],
)
def test_what_does_not_fit_is_refused(chip: str, axes: Any, networks: Any, shape: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_topology(find_hardware(chip), axes, networks, shape)


def test_a_part_of_an_axis_takes_its_inner_lanes() -> None:
    topology = make_topology(find_hardware("h100"), (("data", 4), ("model", 4)))
    assert [lane.size for lane in topology.lanes_of((("data", 2),), 2)] == [2]
    assert topology.lanes_of((("data", 2),), 2)[0].network == 0
    assert [(lane.network, lane.size) for lane in topology.lanes_of(None, 8)] == [(1, 8)]
    assert topology.devices == 16
