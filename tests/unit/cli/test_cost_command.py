"""`pyshardy cost` from its command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pyshardy.costing.chips import chip_text
from support.tables import tables_in

from .command_line import Cli
from .opt_command_line import Put

PROGRAM = """
sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @main(%x: tensor<512x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                %w: tensor<256x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}) -> tensor<512x256xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<512x256xf32>, tensor<256x256xf32>) -> tensor<512x256xf32>
  return %0 : tensor<512x256xf32>
}
"""


def test_the_tables_say_that_figures_are_estimates(cli: Cli, put: Put) -> None:
    found = cli("cost", put(PROGRAM), "--hardware", "h100")
    assert found.status == 0
    assert "estimated cost on 8 x NVIDIA H100 SXM" in found.out
    for title in ("time per step (estimated)", "peak memory per device (estimated)", "alive at the peak (estimated)"):
        assert title in found.out
    assert "axis data over nvlink 4" in found.out


@pytest.mark.parametrize(
    "share, status, first",
    [(0.5, 1, "does not fit: about "), (0.95, 0, "too close to call: about "), (1.05, 0, "too close to call: about "),
     (2.0, 0, "estimated cost on ")],
)  # fmt: skip
def test_the_first_line_says_what_does_not_fit(
    cli: Cli, put: Put, tmp_path: Path, share: float, status: int, first: str
) -> None:
    path, chip = put(PROGRAM), tmp_path / "chip.toml"
    peak = json.loads(cli("cost", path, "--json", "--hardware", "h100").out)["estimated"]["memory"]["bytes"]
    chip.write_text(re.sub(r"memory_bytes = .*", f"memory_bytes = {peak * share}", chip_text("h100"), count=1))
    found = cli("cost", path, "--hardware", str(chip))
    assert found.status == status
    assert found.out.splitlines()[0].startswith(first)
    assert "in nine of ten steps compiled by XLA for H100" in " ".join(found.out.split())


def test_the_output_says_whose_program_was_priced(cli: Cli, put: Put) -> None:
    path = put(PROGRAM)
    assert cli("cost", path).out.splitlines()[1] == "as partitioned by pyshardy"
    assert json.loads(cli("cost", path, "--json").out)["speaker"] == "as partitioned by pyshardy"


def test_time_by_scope_or_line(cli: Cli, put: Put) -> None:
    path = put(PROGRAM)
    assert "time by line, without overlap (estimated)" in cli("cost", path, "--by", "line").out
    found = json.loads(cli("cost", path, "--by", "scope", "--json").out)
    assert [row["scope"] for row in found["by_scope"]] == [None]


def test_a_timeline_in_a_file(cli: Cli, put: Put, tmp_path: Path) -> None:
    trace = tmp_path / "step.json"
    found = cli("cost", put(PROGRAM), "--hardware", "h100", "--trace", str(trace))
    assert found.status == 0 and "time per step" in found.out
    events = json.loads(trace.read_text())["traceEvents"]
    assert "dot_general" in [event["name"] for event in events if event["ph"] == "X"]
    refused = cli("cost", put(PROGRAM), "--hardware", "h100", "--trace", str(tmp_path / "no" / "step.json"))
    assert refused.status == 2 and "needed a place that can be written to" in refused.err and not refused.out


def test_json_and_another_mesh(cli: Cli, put: Put) -> None:
    path = put(PROGRAM)
    small = json.loads(cli("cost", path, "--json", "--hardware", "v5p").out)
    large = json.loads(cli("cost", path, "--json", "--hardware", "v5p", "--mesh", "data=64,model=2").out)
    assert (small["devices"], large["devices"]) == (8, 128)
    assert large["estimated"]["flops_per_device"] < small["estimated"]["flops_per_device"]
    assert large["topology"]["data"].startswith("ici")


@pytest.mark.parametrize(
    "options, message",
    [
        (("--hardware", "h1000"), "looking up hardware: got 'h1000', needed one of"),
        (("--hardware", "nothing.toml"), "reading a hardware file"),
        (
            ("--mesh", "rows=4"),
            "giving the mesh other sizes: got rows=4, needed a size for every axis, as in data=4,model=2",
        ),
        (("--mesh", "data"), "got --mesh data, needed axes with sizes"),
        (("--mesh", "data=0,model=2"), "needed axes with sizes"),
        (("--networks", "data=ether"), "the network 'ether' for the axis 'data'"),
        (("--networks", "data"), "needed axes with networks"),
        (("--shape", "3x"), "needed dimensions like 16x16"),
        (("--shape", "3x3"), "the shape 3x3"),
        (("--hardware", "h100", "--shape", "2x4"), "needed a chip with a torus"),
        (("--collectives", "magic"), "got --collectives magic, needed one of formula, measured, xla"),
    ],
)
def test_what_makes_no_sense_is_refused(cli: Cli, put: Put, options: tuple[str, ...], message: str) -> None:
    found = cli("cost", put(PROGRAM), *options)
    assert found.status == 2 and found.out == ""
    assert message in found.err and "Traceback" not in found.err


H100 = chip_text("h100")


@pytest.mark.parametrize(
    "text, message",
    [
        (
            H100.replace("\nmemory_bytes =", "\n#", 1),
            "got the file without memory_bytes, needed memory_bytes in the file",
        ),
        (H100.replace('kind = "switch"', "", 1), "got networks entry 1 ('nvlink') without kind"),
        ("speed = 3\n" + H100, "got the file with speed, needed the fields name, memory_bytes"),
        (H100.replace("devices = 8\n", "device = 8\n", 1), "got networks entry 1 ('nvlink') with device"),
        (H100.replace("matrix_efficiency = 0.65", "matrix_efficiency = 1.7"), "got matrix_efficiency = 1.7"),
        (H100.replace("memory_bytes = 80000000000.0", 'memory_bytes = "80 GB"'), "got memory_bytes = '80 GB'"),
        (H100.replace("devices = 2\n", "", 1), "an entry of measured without devices"),
        ("name = ", "needed TOML"),
    ],
)
def test_hardware_files_with_mistakes_are_refused(cli: Cli, put: Put, tmp_path: Path, text: str, message: str) -> None:
    assert text != H100
    file = tmp_path / "mine.toml"
    file.write_text(text)
    found = cli("cost", put(PROGRAM), "--hardware", str(file))
    assert found.status == 2 and found.out == ""
    assert message in found.err and "mine.toml" in found.err and "Traceback" not in found.err


def test_a_conditional_says_that_the_worst_branch_counts(cli: Cli, put: Put) -> None:
    text = """
    func.func @main(%p: tensor<i32>, %x: tensor<64x64xf32>) -> tensor<64x64xf32> {
      %0 = "stablehlo.case"(%p) ({
        %1 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
          : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
        stablehlo.return %1 : tensor<64x64xf32>
      }, {
        stablehlo.return %x : tensor<64x64xf32>
      }) : (tensor<i32>) -> tensor<64x64xf32>
      return %0 : tensor<64x64xf32>
    }"""
    found = cli("cost", put(text), "--hardware", "h100")
    assert "worst branch" in " ".join(found.out.split())
    data = json.loads(cli("cost", put(text), "--hardware", "h100", "--json").out)
    assert any("worst branch" in note for note in data["notes"])
    assert data["estimated"]["flops_per_device"] == 2 * 64**3


@pytest.mark.parametrize("columns", [80, 200])
def test_tables_fit_the_terminal(cli: Cli, put: Put, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    found = cli("cost", put(PROGRAM), "--hardware", "h100")
    assert max(len(line) for line in found.out.splitlines()) <= columns
    assert "memory over the program, from 0 to" in found.out
    assert "all_reduce" in found.out or "all_gather" in found.out or "reduce_scatter" in found.out


LAYERS = """
sdy.mesh @mesh = <["data"=4, "model"=2]>
#dense = loc("jit(step)/dot_general"(callsite("/opt/lib/python3.13/site-packages/flax/nnx/nn/linear.py":422:8 at
  callsite("Model.__call__"("/home/me/experiments/transformer.py":45:16) at "/home/me/experiments/train.py":9:4))))
func.func @main(%x: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>} loc("x"),
                %0: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>} loc("params['blocks'][0]['attention']['query']['kernel']"),
                %1: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>} loc("params['blocks'][1]['attention']['query']['kernel']"),
                %2: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>} loc("params['blocks'][2]['attention']['query']['kernel']"))
    -> tensor<64x64xf32> {
  %3 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc(#dense)
  %4 = stablehlo.dot_general %3, %1, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc(#dense)
  %5 = stablehlo.dot_general %4, %2, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc(#dense)
  return %5 : tensor<64x64xf32>
}
"""


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_tables_name_whole_values_once_and_the_line_of_the_user(
    cli: Cli, put: Put, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    found = cli("cost", put(LAYERS), "--hardware", "h100").out
    (weights,) = [line.split() for line in found.splitlines() if "params" in line]
    assert weights[:2] == ["params['blocks'][0..2]['attention']['query']['kernel']", "×3"]
    rows = tables_in(found)["collectives (estimated by the formula model)"]
    (sums,) = [row for row in rows if row["kind"] == "reduce_scatter"]
    assert sums[""] == "×2" and sums["source"].endswith("transformer.py:45")
    assert "linear.py" not in found


KERNELS = """
sdy.mesh @mesh = <["data"=4]>
func.func @main(%x: tensor<4096x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>})
    -> tensor<4096x4096xbf16> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"data"}, {}]>] out_shardings=[<@mesh, [{"data"}, {}]>]
      manual_axes={"data"} (%held: tensor<1024x4096xbf16>) {
    %1 = stablehlo.custom_call @tpu_custom_call(%held) {kernel_name = "known", backend_config =
        "{\\22cost_estimate\\22: {\\22flops\\22: 1e12, \\22transcendentals\\22: 0, \\22bytes_accessed\\22: 1024}}"}
      : (tensor<1024x4096xbf16>) -> tensor<1024x4096xbf16>
    %2 = stablehlo.custom_call @tpu_custom_call(%1) {kernel_name = "mine"}
      : (tensor<1024x4096xbf16>) -> tensor<1024x4096xbf16>
    %3 = stablehlo.custom_call @tpu_custom_call(%2) {kernel_name = "mine"}
      : (tensor<1024x4096xbf16>) -> tensor<1024x4096xbf16>
    %4 = stablehlo.custom_call @mystery(%3) : (tensor<1024x4096xbf16>) -> tensor<1024x4096xbf16>
    sdy.return %4 : tensor<1024x4096xbf16>
  } : (tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}
"""


def test_the_line_of_the_step_names_kernels_without_a_price(cli: Cli, put: Put) -> None:
    path = put(KERNELS)
    said = "step, without 2 calls of mine and 1 of mystery, which have no price"
    rows = tables_in(cli("cost", path, "--hardware", "v5p").out)["time per step (estimated)"]
    assert next(iter(rows[0].values())) == said
    data = json.loads(cli("cost", path, "--hardware", "v5p", "--json").out)["estimated"]
    assert data["unknown_ops"] == {"mine": 2, "mystery": 1}
    calls = {one["name"]: one for one in data["custom_calls"]}
    assert {name: (one["target"], one["count"], one["priced_by"]) for name, one in calls.items()} == {
        "known": ("tpu_custom_call", 1, "its author"),
        "mine": ("tpu_custom_call", 2, None),
        "mystery": ("mystery", 1, None),
    }
    assert data["flops_per_device"] == 1e12 and calls["known"]["seconds"] > 1e12 / 459e12
    assert sum(one["seconds"] for one in calls.values()) == pytest.approx(data["step_seconds"])


def test_pages_name_kernels_without_a_price(cli: Cli, put: Put) -> None:
    data = json.loads(cli("report", put(KERNELS), "--json", "--hardware", "v5p").out)
    assert "estimated, without 2 calls of mine and 1 of mystery, which have no price" in json.dumps(data)
