"""`pyshardy partition`, and the flags of `pyshardy run` that concern partitioned programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pyshardy
from support.reference import jaxlib_version
from support.tables import column, tables_in

from .command_line import Cli, Outcome

MLP = Path(__file__).parents[3] / "examples" / "mlp.mlir"
MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'
T = "tensor<8x4xf32>"


def on(sharding: str) -> str:
    return f"{{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}"


SLICE = f"""{MESH}func.func @main(%a: tensor<16xf32> {on('[{"x"}]')}) -> (tensor<16xf32> {on('[{"x"}]')}) {{
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %a, %z, low = [1], high = [-1], interior = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}}
"""
TOP_K = f"""{MESH}func.func @main(%a: {T} {on('[{"x"}, {"y"}]')}) -> tensor<8x2xf32> {{
  %values, %indices = chlo.top_k(%a, k = 2) : {T} -> (tensor<8x2xf32>, tensor<8x2xi32>)
  return %values : tensor<8x2xf32>
}}
"""
FOR_XLA = f"""{MESH}func.func @main(%a: {T}) -> {T} {{
  %0 = stablehlo.custom_call @CustomSPMDPartitioning(%a) : ({T}) -> {T}
  return %0 : {T}
}}
"""


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a module to a file."""

    def write(text: str) -> Path:
        path = tmp_path / "in.mlir"
        path.write_text(text)
        return path

    return write


# partition


def test_the_tables_are_those_of_the_library(cli: Cli) -> None:
    found = cli("partition", MLP)
    assert (found.status, found.err) == (0, "")
    assert found.out == str(pyshardy.partition(pyshardy.load(MLP)))
    assert found.out.startswith("function @main on 8 devices: data=4, model=2\n")
    assert "\nevery device sends 2.0 KiB in 1 collective\n" in found.out
    assert column(found.out, "collectives", "along") == ["model"]


def test_json_is_that_of_the_library(cli: Cli) -> None:
    found = cli("partition", MLP, "--json")
    assert (found.status, found.err) == (0, "")
    data, expected = json.loads(found.out), pyshardy.partition(pyshardy.load(MLP)).to_json()
    assert data == json.loads(json.dumps(expected))
    assert [total["kind"] for total in data["traffic"]["kinds"]] == ["all_reduce"]


@pytest.mark.parametrize("name", ["out.mlir", "out.mlirbc", "out.bc"])
@pytest.mark.parametrize("json_flag", [[], ["--json"]])
def test_the_program_per_device_is_written(name: str, json_flag: list[str], cli: Cli, tmp_path: Path) -> None:
    output = tmp_path / name
    found = cli("partition", MLP, "-o", output, *json_flag)
    assert (found.status, found.err) == (0, "")
    assert found.out.startswith("{" if json_flag else "function @main")
    assert output.read_bytes().startswith(b"ML\xefR" if "bc" in name else b"#loc")
    assert pyshardy.load(output).text() == pyshardy.partition(pyshardy.load(MLP)).module.text()


def test_standard_output_holds_the_module_alone(cli: Cli) -> None:
    assert cli("partition", MLP, "-o", "-", "--no-locations") == Outcome(
        0, pyshardy.partition(pyshardy.load(MLP)).module.text(), ""
    )


def kinds(found: Outcome) -> list[str]:
    assert found.status == 0
    return [row["kind"] for row in json.loads(found.out)["traffic"]["collectives"]]


def test_without_halo_exchange_whole_tensors_are_gathered(cli: Cli, written: Callable[[str], Path]) -> None:
    path = written(SLICE)
    assert kinds(cli("partition", path, "--json")) == ["collective_permute"]
    assert kinds(cli("partition", path, "--json", "--no-halo-exchange")) == ["all_gather"]


def test_groups_are_numbers_or_axes(cli: Cli) -> None:
    assert "replica_groups = dense<" in cli("partition", MLP, "-o", "-", "--no-mesh-axes-groups").out
    for flags in ([], ["--mesh-axes-groups"]):
        assert "replica_group_mesh_axes" in cli("partition", MLP, "-o", "-", *flags).out


TWO_MESHES = """sdy.mesh @a = <["x"=2, "y"=4]>
sdy.mesh @b = <["p"=4, "q"=2], device_ids=[7, 2, 4, 6, 1, 3, 5, 0]>
func.func @main(%v: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@b, [{}, {"p"}]>},
                %w: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@b, [{"p"}, {}]>},
                %u: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@a, [{"x"}, {}]>})
    -> (tensor<8x8xf32>, tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@a, [{}, {}]>}) {
  %0 = stablehlo.dot_general %v, %w, contracting_dims = [1] x [0]
    : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  return %0, %u : tensor<8x8xf32>, tensor<8x16xf32>
}"""


@pytest.mark.parametrize("flags", [[], ["--mesh-axes-groups"], ["--no-mesh-axes-groups"]])
def test_collectives_are_counted_on_the_mesh_they_are_on(
    flags: list[str], cli: Cli, written: Callable[[str], Path]
) -> None:
    path = written(TWO_MESHES)
    for command in (["partition"], ["run"]):
        found = cli(*command, path, "--json", *flags)
        assert (found.status, found.err) == (0, "")
        rows = json.loads(found.out)["traffic"]["collectives"]
        assert [(row["mesh"], row["axes"][0]["name"], row["sent_bytes_per_device"]) for row in rows] == [
            ("@b", "p", 2 * 3 * 8 * 8),
            ("@a", "x", 4 * 16 * 4),
        ]
    assert column(cli("partition", path, *flags).out, "collectives", "along") == ["@b: p", "@a: x"]


def counting(condition: str) -> str:
    on_x = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
    whole = "#sdy.sharding_per_value<[<@mesh, [{}, {}]>]>"
    return f"""{MESH}func.func @main(%a: tensor<64x256xf32> {on_x}, %n: tensor<i32>) -> (tensor<64x256xf32> {on_x}) {{
      %0 = stablehlo.constant dense<0> : tensor<i32>
      %1 = stablehlo.constant dense<1> : tensor<i32>
      %m = stablehlo.constant dense<96> : tensor<i32>
      %2:2 = stablehlo.while(%i = %0, %x = %a) : tensor<i32>, tensor<64x256xf32> cond {{
        %3 = stablehlo.compare LT, %i, {condition} : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %3 : tensor<i1>
      }} do {{
        %3 = stablehlo.add %i, %1 : tensor<i32>
        %4 = sdy.sharding_constraint %x <@mesh, [{{}}, {{}}]> : tensor<64x256xf32>
        %5 = stablehlo.reverse %4, dims = [0] {{sdy.sharding = {whole}}} : tensor<64x256xf32>
        stablehlo.return %3, %5 : tensor<i32>, tensor<64x256xf32>
      }}
      return %2#1 : tensor<64x256xf32>
    }}"""


def test_a_loop_multiplies_by_its_rounds(cli: Cli, written: Callable[[str], Path]) -> None:
    found = cli("partition", written(counting("%m")), "--view=stablehlo")
    assert found.status == 0
    (row,) = tables_in(found.out)["collectives"]
    assert (row[""], row["bytes sent"]) == ("×96", "4.5 MiB")
    assert tables_in(found.out)["totals"] == [{"kind": "all_gather", "count": "96", "bytes sent": "4.5 MiB"}]


def test_a_loop_of_unknown_length_makes_a_lower_bound(cli: Cli, written: Callable[[str], Path]) -> None:
    path = written(counting("%n"))
    found = cli("partition", path, "--view=stablehlo")
    (row,) = tables_in(found.out)["collectives"]
    assert (row[""], row["bytes sent"]) == ("per round", "48.0 KiB")
    assert tables_in(found.out)["totals"] == [{"kind": "all_gather", "count": "≥ 1", "bytes sent": "≥ 48.0 KiB"}]
    traffic = json.loads(cli("partition", path, "--view=stablehlo", "--json").out)["traffic"]
    assert (traffic["is_lower_bound"], traffic["sent_bytes_per_device"]) == (True, 48 * 1024)


def test_options_of_propagation_count(cli: Cli, written: Callable[[str], Path]) -> None:
    path = written(f"""{MESH}func.func @main(%a: {T} {on('[{"x"}, {}]')}, %b: {T} {on('[{}, {"x"}]')}) -> {T} {{
      %0 = stablehlo.add %a, %b : {T}
      return %0 : {T}
    }}""")
    texts = {cli("partition", path, "-o", "-", f"--strategy={name}").out for name in ("basic", "aggressive")}
    assert len(texts) == 2


def test_what_is_gathered_is_a_warning_or_refused(
    cli: Cli, written: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(TOP_K)
    monkeypatch.chdir(path.parent)  # paths are shown as seen from there if that is shorter
    found = cli("partition", path, "--view=stablehlo")
    assert (found.status, found.err) == (0, "")
    warned = f"warning: {path.name}:3:23: 'chlo.top_k' cannot run on shards and runs on whole tensors"
    assert found.out.replace("\n  ", " ").count(warned) == 1
    assert warned in cli("partition", path, "--view=stablehlo", "--json").err
    refused = cli("partition", path, "--view=stablehlo", "--no-replicate-unsupported")
    assert (refused.status, refused.out) == (1, "")
    assert refused.err.startswith("error: 'chlo.top_k' op is sharded, and it is unknown how to run it on shards")


@pytest.mark.parametrize("before", [None, "what was there"])
def test_nothing_is_written_of_what_is_refused(
    before: str | None, cli: Cli, written: Callable[[str], Path], tmp_path: Path
) -> None:
    path, output = written(FOR_XLA), tmp_path / "out.mlir"
    if before is not None:
        output.write_text(before)
    found = cli("partition", path, "-o", output)
    message = "calls @CustomSPMDPartitioning, a custom partitioner in Python; load the function, not its text"
    assert found == Outcome(1, "", f"error: 'stablehlo.custom_call' op {message}\n  at {path}:3:8\n")
    assert (output.read_text() if output.exists() else None) == before
    assert {file.name for file in tmp_path.iterdir()} == {"in.mlir"} | ({"out.mlir"} if before else set())


def test_a_place_that_cannot_be_written_to(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "missing" / "out.mlir"
    message = f"error: writing {path}: got no such file or directory, needed a place that can be written to\n"
    assert cli("partition", MLP, "-o", path) == Outcome(2, "", message)


def test_meshes_of_different_sizes(cli: Cli, written: Callable[[str], Path]) -> None:
    path = written(f"""sdy.mesh @few = <["x"=2]>
    {MESH}func.func @main(%a: {T} {{sdy.sharding = #sdy.sharding<@few, [{{"x"}}, {{}}]>}}, %b: {T} {on('[{"x"}, {}]')}) {{ return }}""")
    found = cli("partition", path)
    assert (found.status, found.out) == (1, "")
    assert "got shardings on meshes of 2 and of 8 devices, needed the same devices for all" in found.err


# run


@pytest.mark.slow_cases("interpreter")
@pytest.mark.parametrize("engine", ["local", "xla", "interpreter"])
def test_every_engine_agrees_with_one_device(engine: str, cli: Cli) -> None:
    if engine == "interpreter" and jaxlib_version() < (0, 12):
        found = cli("run", MLP, "--engine", engine)
        assert found.status == 1 and "needed jaxlib 0.12, or as many processors as devices" in found.err
        return
    found = cli("run", MLP, "--engine", engine, "--json", "--times")
    assert (found.status, found.err) == (0, "")
    data = json.loads(found.out)
    assert data["comparison"]["equal"]
    assert (data["traffic"] is None) == (engine == "xla")
    assert ("partition" in [stage["name"] for stage in data["stages"]]) == (engine != "xla")


def test_an_unknown_engine(cli: Cli) -> None:
    found = cli("run", MLP, "--engine", "gpu")
    assert (found.status, found.out) == (2, "")
    assert found.err.startswith("error: reading the command line: got --engine gpu, needed one of local, xla")


def test_without_the_check_one_device_does_nothing(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyshardy.runtime import execute

    def refuse(*_: Any) -> None:
        raise AssertionError("one device was asked")

    monkeypatch.setattr(execute, "run_on_one_device", refuse)
    found = cli("run", MLP, "--no-check")
    assert (found.status, found.err) == (0, "")
    assert "compared" not in found.out and "run on one device" not in found.out
    assert json.loads(cli("run", MLP, "--no-check", "--json").out)["comparison"] is None
    with pytest.raises(AssertionError):
        cli("run", MLP, "--check")


def test_totals_of_the_collectives_are_shown(cli: Cli) -> None:
    found = cli("run", MLP, "--no-check").out
    assert column(found, "largest collectives", "kind") == ["all_reduce"]
    assert "all_reduce" not in cli("run", MLP, "--no-check", "--engine", "xla").out


def test_options_of_partitioning_count(
    cli: Cli, written: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    original = pyshardy.partition
    monkeypatch.setattr("pyshardy.cli.run_command.partition", lambda *args: seen.append(args[1]) or original(*args))
    flags = ["--no-halo-exchange", "--mesh-axes-groups", "--rng-bit-generator-unsafe", "--no-replicate-unsupported"]
    assert cli("run", written(SLICE), *flags).status == 0
    assert seen == [pyshardy.PartitionOptions(False, True, True, False)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("devices", "status", "said"),
    [("8", 0, "within rounding"), ("12", 0, "within rounding"), ("4", 2, "got 4 devices, needed 8")],
)
def test_the_number_of_devices(devices: str, status: int, said: str) -> None:
    environment = {
        name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES")
    }
    command = [sys.executable, "-m", "pyshardy.cli.main", "run", str(MLP), "--devices", devices]
    options: Any = {"capture_output": True, "text": True, "cwd": MLP.parents[1], "timeout": 120}
    found = subprocess.run(command, env=environment, check=False, **options)
    assert found.returncode == status, found.stderr
    assert said in (found.stderr if status else found.stdout)


@pytest.mark.parametrize("devices", ["0", "-1", "x", "1.5"])
def test_devices_that_are_no_number(devices: str, cli: Cli) -> None:
    message = f"error: reading the command line: argument --devices: got '{devices}', needed a whole number from 1"
    assert cli("run", MLP, f"--devices={devices}") == Outcome(2, "", f"{message}\n  try: pyshardy run --help\n")


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("local", "providing virtual CPU devices: got a program for 2147483648, needed at most 4096"
         "\n  try: pyshardy partition and pyshardy show, which need no devices"),
        ("xla", "providing virtual CPU devices: got a program for 2147483648, needed at most 4096"
         "\n  try: pyshardy partition and pyshardy show, which need no devices"),
        ("interpreter", "running a program in the interpreter: got 2147483648 devices, needed at most 1048576, as "
         "something is made for each of them\n  try: a smaller mesh; groups of devices as axes of a mesh "
         "(--mesh-axes-groups) need no list"),
    ],
)  # fmt: skip
def test_a_program_for_more_devices_than_there_can_be_does_not_run(
    engine: str, message: str, cli: Cli, written: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES"):  # the command may set either; the value of now comes back
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    path = written(f"""sdy.mesh @mesh = <["x"=2147483648]>\nfunc.func @main(%a: {T}) -> {T} {{
      %0 = stablehlo.abs %a : {T}
      return %0 : {T}
    }}""")
    status, out, err = cli("run", path, f"--engine={engine}", "--force")
    assert (status in (1, 2), out, err) == (True, "", f"error: {message}\n")
