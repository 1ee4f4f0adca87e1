"""Results as plain data, and numbers in words."""

from __future__ import annotations

import dataclasses
import json

import pytest

from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.core.text import format_bytes, format_shape
from pyshardy.report.summary import Summary, TensorRow, format_seconds

ROW = TensorRow("x", (32, 64), "f32", parse_sharding('<@mesh, [{"data"}, {}]>'), (8, 64), 8192, 2048, 8192, True)
SUMMARY = Summary(
    "module @net", (("mesh", Mesh([("data", 4)])),), (ROW,), (), 3, 2, (("read", 0.5),), ("mind the gap", "and this")
)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (10 * 1024, "10.0 KiB"),
        (2**20 - 1024, "1023.0 KiB"),
        (2**20, "1.0 MiB"),
        (5 * 2**20 + 2**18, "5.2 MiB"),
        (2**30, "1.0 GiB"),
        (2**40, "1.0 TiB"),
        (2**50, "1.0 PiB"),
        (2**60, "1.0 EiB"),
        (2**70, "1024.0 EiB"),
        (3 * 2**60, "3.0 EiB"),
    ],
)
def test_bytes_have_the_largest_unit_that_fits(count: int, text: str) -> None:
    assert format_bytes(count) == text


@pytest.mark.parametrize("power", [1, 2, 3, 4, 5, 6])
def test_bytes_just_below_a_unit_never_read_as_1024(power: int) -> None:
    assert not format_bytes(1024**power - 1).startswith("1024")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 ms"),
        (0.00004, "0.0 ms"),
        (0.0123, "12.3 ms"),
        (0.25, "250.0 ms"),
        (0.99999, "1.00 s"),
        (1, "1.00 s"),
        (75.678, "75.68 s"),
    ],
)
def test_seconds(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("shape", "dtype", "text"),
    [
        ((), "i32", "i32[]"),
        ((5,), "bf16", "bf16[5]"),
        ((8, 16), "f32", "f32[8, 16]"),
        ((0, 3), "i1", "i1[0, 3]"),
        ((4, -1), "complex<f32>", "complex<f32>[4, ?]"),
    ],
)
def test_shapes(shape: tuple[int, ...], dtype: str, text: str) -> None:
    assert format_shape(shape, dtype) == text


def test_a_summary_as_json_is_structured() -> None:
    data = json.loads(json.dumps(SUMMARY.to_json()))
    (row,) = data.pop("inputs")
    assert data == {
        "version": 1,
        "title": "module @net",
        "device_count": 4,
        "meshes": [{"name": "mesh", "axes": [{"name": "data", "size": 4}], "device_ids": None}],
        "outputs": [],
        "tensors_sharded": 3,
        "tensors_replicated": 2,
        "warnings": ["mind the gap", "and this"],
    }
    assert row == {
        "name": "x",
        "shape": [32, 64],
        "dtype": "f32",
        "sharding": '[{"data"}, {}]',
        "mesh": "mesh",
        "spec": ["data"],
        "axes": [[{"name": "data", "pre_size": 1, "size": None}], []],
        "unreduced": [],
        "local_shape": [8, 64],
        "bytes_total": 8192,
        "bytes_per_device": 2048,
        "bytes_per_device_before": 8192,
        "given_by": "propagation",
        "origins": [],
        "undivided": [],
    }


def test_json_has_times_on_demand_alone() -> None:
    assert "stages" not in SUMMARY.to_json()
    assert SUMMARY.to_json(times=True)["stages"] == [{"name": "read", "seconds": 0.5}]
    longer = dataclasses.replace(SUMMARY, stages=(*SUMMARY.stages, ("run", 2.0)))
    assert longer.to_json() == SUMMARY.to_json()
