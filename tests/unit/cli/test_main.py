"""`pyshardy show` and `pyshardy propagate`, and options that all commands have."""

from __future__ import annotations

import io
import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pyshardy
from pyshardy.cli.main import main
from pyshardy.propagation.options import StrategyOption
from pyshardy.report.summary import Summary
from support.report_text import summary_text
from support.tables import column, tables_in

from .command_line import Cli, Outcome, TerminalOfBytes
from .opt_command_line import Put
from .processes import run_process
from .sample_modules import MESH, MLP, T, negate, on

pytestmark = pytest.mark.slow


def summary_of_mlp(with_origins: bool = True) -> Summary:
    """What is shown of the example file."""
    result = pyshardy.propagate(pyshardy.load(MLP))
    return result.summary_with_origins if with_origins else result.summary


def test_show_prints_the_tables_of_the_library_with_origins_and_nothing_else(cli: Cli) -> None:
    found = cli("show", MLP)
    following = "\nnext: `pyshardy doctor` instead of `show` finds what costs most, with a cure\n"
    assert found == Outcome(0, summary_text(summary_of_mlp()) + following, "")
    assert found.out.startswith("function @main on 8 devices: data=4, model=2\n")
    rows = [(row["name"], row["sharding"], row["given by"]) for row in tables_in(found.out)["inputs"]]
    assert rows == [
        ("x", "P('data')", "user"),
        ("params['w1']", "P(None, 'model')", "user"),
        ("params['w2']", "P('model')", "params['w1']"),
    ]
    assert column(found.out, "outputs", "sharding") == ["P('data')"]


@pytest.mark.parametrize("command", ["show", "propagate"])
def test_json_holds_what_the_tables_show(command: str, cli: Cli) -> None:
    found = cli(command, MLP, "--json")
    assert (found.status, found.err) == (0, "")
    data = json.loads(found.out)
    assert data == summary_of_mlp(with_origins=command == "show").to_json()
    assert (data["version"], data["title"], data["device_count"]) == (1, "function @main", 8)
    assert data["meshes"][0]["axes"] == [{"name": "data", "size": 4}, {"name": "model", "size": 2}]
    assert [row["spec"] for row in data["inputs"]] == [["data"], [None, "model"], ["model"]]
    assert [row["given_by"] for row in data["inputs"]] == ["user", "user", "propagation"]
    assert (data["tensors_sharded"], data["tensors_replicated"], data["warnings"]) == (3, 0, [])


@pytest.mark.parametrize("command", ["show", "propagate", "partition"])
def test_times_are_told_on_demand_alone(command: str, cli: Cli) -> None:
    assert "stages" not in json.loads(cli(command, MLP, "--json").out)
    assert cli(command, MLP, "--json") == cli(command, MLP, "--json")
    stages = json.loads(cli(command, MLP, "--json", "--times").out)["stages"]
    assert {"read", "write"} <= {stage["name"] for stage in stages}
    assert all(0 <= stage["seconds"] < 60 for stage in stages)
    assert "time:" not in cli(command, MLP).out
    assert (command == "propagate") != ("\ntime: read " in cli(command, MLP, "--times").out)


def test_propagate_writes_the_module_that_the_library_gives(cli: Cli) -> None:
    found = cli("propagate", MLP, "--no-locations")
    assert (found.status, found.err) == (0, "")
    assert found.out == pyshardy.propagate(pyshardy.load(MLP)).module.text()
    assert found.out.count("sdy.sharding = ") == 7  # three arguments, a result, three ops


@pytest.mark.parametrize("name", ["out.mlir", "out.mlirbc", "out.bc"])
@pytest.mark.parametrize("before", [None, "what was there"])
def test_the_output_file_is_a_module_again(name: str, before: str | None, cli: Cli, tmp_path: Path) -> None:
    output = tmp_path / name
    if before is not None:
        output.write_text(before)
    assert cli("propagate", MLP, "-o", output) == Outcome(0, "", "")
    assert output.read_bytes().startswith(b"ML\xefR") == name.endswith("bc")
    assert pyshardy.load(output).text() == cli("propagate", MLP, "--no-locations").out
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_the_output_file_has_the_permissions_of_any_new_file(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    cli("propagate", MLP, "-o", tmp_path / "out.mlir")
    other, output = (stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("other", "out.mlir"))
    assert output == other


@pytest.mark.parametrize("name", ["in.mlirbc", "in.mlir", "in"])
def test_bytecode_and_text_agree_whatever_the_file_is_called(name: str, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(pyshardy.load(MLP).bytecode())
    found = cli("propagate", tmp_path / name, "--no-locations")
    assert found == cli("propagate", MLP, "--no-locations")
    assert found.status == 0
    assert cli("show", tmp_path / name) == cli("show", MLP)


def test_what_is_propagated_is_propagated_again_without_a_change(cli: Cli, tmp_path: Path) -> None:
    first, second = tmp_path / "first.mlir", tmp_path / "second.mlir"
    assert cli("propagate", MLP, "-o", first).status == cli("propagate", first, "-o", second).status == 0
    assert second.read_bytes() == first.read_bytes()


def test_through_a_pipe_no_name_and_no_line_is_lost(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of arguments are in the locations, and so are the lines that collectives are for."""
    propagated = cli("propagate", MLP)
    for flags, is_named in (([], True), (["--no-locations"], False)):
        text = cli("propagate", MLP, *flags).out
        found = {}
        for command in ("show", "partition"):
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
            found[command] = cli(command, "-").out
        names = column(cli("show", MLP).out, "inputs", "name")
        assert (column(found["show"], "inputs", "name") == names) == is_named
        (source,) = column(found["partition"], "collectives", "source")
        assert source.endswith("mlp.mlir:10") == is_named
        assert column(found["show"], "outputs", "name") == ["result"]
    assert f'loc("{MLP}":10:8)' in propagated.out and '"-":' not in propagated.out


def test_a_person_sees_no_locations_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    text = pyshardy.propagate(pyshardy.load(MLP)).module.text()
    for flags, is_unsharded in (([], True), (["--locations"], False), (["--no-locations"], True)):
        stream = TerminalOfBytes()
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(["propagate", str(MLP), *flags]) == 0
        assert (stream.buffer.getvalue().decode() == text) == is_unsharded


@pytest.mark.parametrize("output", [[], ["-o", "-"]])
def test_standard_input_and_output(output: list[str], cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(MLP.read_bytes())))
    assert cli("propagate", "-", "--no-locations", *output) == cli("propagate", MLP, "--no-locations")


def test_bytecode_through_standard_input_of_a_process() -> None:
    found = run_process("propagate", "-", "--no-locations", input=pyshardy.load(MLP).bytecode(), stdout=subprocess.PIPE)
    assert (found.returncode, found.stderr) == (0, b"")
    assert found.stdout.decode() == pyshardy.propagate(pyshardy.load(MLP)).module.text()


def test_propagate_with_json_still_writes_the_file(cli: Cli, tmp_path: Path) -> None:
    output = tmp_path / "out.mlir"
    found = cli("propagate", MLP, "--json", "-o", output)
    assert (found.status, found.err) == (0, "")
    assert json.loads(found.out)["title"] == "function @main"
    assert output.read_text() == cli("propagate", MLP).out


def test_a_module_without_a_mesh_has_nothing_to_shard(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "in.mlir"
    path.write_text(f"module @plain {{ func.func @main(%a: {T}) -> {T} {{ return %a : {T} }} }}")
    found = cli("show", path)
    assert found.status == 0
    assert found.out.startswith("module @plain: no mesh, nothing is sharded\n")
    assert column(found.out, "inputs", "sharding") == column(found.out, "outputs", "sharding") == ["replicated"]


# Both products want `y` elsewhere, the sum disagrees about `x`, and the reshape needs a sub-axis.
DISAGREEMENT = f"""{MESH}
func.func @main(%a: tensor<8x8xf32> {on('@mesh, [{"x"}, {}]')}, %b: tensor<8x8xf32> {on('@mesh, [{}, {"x"}]')},
    %c: tensor<8x8xf32> {on('@mesh, [{?}, {"y"}p1]')}, %d: tensor<8x8xf32> {on('@mesh, [{"y"}p2, {?}]')},
    %e: tensor<4xf32> {on('@mesh, [{"x"}]')})
    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<2x2xf32>, tensor<8x8xf32>) {{
  %0 = stablehlo.add %a, %b : tensor<8x8xf32>
  %1 = stablehlo.dot_general %0, %a, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.add %1, %b : tensor<8x8xf32>
  %3 = stablehlo.add %d, %c : tensor<8x8xf32>
  %4 = stablehlo.reshape %e : (tensor<4xf32>) -> tensor<2x2xf32>
  return %0, %3, %4, %2 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<2x2xf32>, tensor<8x8xf32>
}}
"""


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        (["--strategy", "basic"], {"strategy": StrategyOption.BASIC}),
        (["--strategy=basic-then-aggressive"], {"strategy": StrategyOption.BASIC_THEN_AGGRESSIVE}),
        (["--no-op-priorities"], {"op_priorities": False}),
        (["--no-user-priorities"], {"user_priorities": False}),
        (["--conservative"], {"conservative": True}),
    ],
)
def test_options_of_propagation_do_what_they_say(
    flags: list[str], options: dict[str, Any], cli: Cli, tmp_path: Path
) -> None:
    path = tmp_path / "in.mlir"
    path.write_text(DISAGREEMENT)
    expected = pyshardy.propagate(pyshardy.load(path), pyshardy.PropagateOptions(**options)).module.text()
    assert cli("propagate", path, "--no-locations", *flags) == Outcome(0, expected, "")
    if flags != ["--strategy=basic-then-aggressive"]:
        assert expected != cli("propagate", path, "--no-locations").out


@pytest.mark.parametrize("command", ["show", "propagate"])
def test_warnings_are_shown(command: str, cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "in.mlir"
    path.write_text(negate('@mesh, [{"x"}, {"y"}]', type="tensor<7x4xf32>"))
    found = cli(command, path)
    assert found.status == 0
    shown, silent = (found.out, found.err) if command == "show" else (found.err, found.out)
    warning = "warning: input arg0 is split less than annotated: P(None, 'y') divides f32[7, 4] evenly\n"
    assert shown.partition("\ninputs\n")[0].endswith(warning)  # before the details
    assert "warning:" not in silent


def test_shardings_are_written_as_in_the_dialect_on_demand(cli: Cli) -> None:
    text = cli("show", MLP, "--notation", "sdy").out
    assert column(text, "inputs", "sharding") == ['[{"data"}, {}]', '[{}, {"model"}]', '[{"model"}, {}]']
    assert column(cli("partition", MLP, "--notation=sdy").out, "collectives", "along") == ['"model"']


def test_every_layer_is_shown_on_demand(cli: Cli) -> None:
    sizes = ["--layers", "3", "--width", "16", "--heads", "2", "--vocabulary", "32"]
    folded, unfolded = (
        column(cli("show", "example", *sizes, *flags).out, "inputs", "name") for flags in ([], ["--all"])
    )
    assert "params['layers'][0..2]['w1']" in folded and "params['layers'][1]['w1']" not in folded
    assert "params['layers'][0..2]['w1']" not in unfolded and "params['layers'][1]['w1']" in unfolded


@pytest.mark.parametrize(
    ("args", "mentioned"),
    [
        (["--help"], ["propagate", "show", "partition", "run"]),
        (
            ["propagate", "--help"],
            ["FILE|example", "sizes of the example", "--output", "--strategy", "--conservative", "--json"],
        ),
        (["show", "--help"], ["--no-op-priorities", "--no-user-priorities"]),
        (["partition", "--help"], ["--output", "--no-halo-exchange", "--mesh-axes-groups", "--json"]),
        (
            ["run", "--help"],
            ["--engine", "--no-check", "--devices", "--inputs", "--seed", "--tolerance", "sizes of the example"],
        ),
    ],
)
def test_help_names_what_there_is(args: list[str], mentioned: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(args)
    out, err = capsys.readouterr()
    assert (exit.value.code, err) == (0, "")
    assert [word for word in mentioned if word not in out] == []


@pytest.mark.parametrize("command", ["show", "propagate", "partition"])
def test_ops_of_unknown_dialects_are_accepted_on_demand(command: str, cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "unknown.mlir"
    path.write_text(f'func.func @main(%a: {T}) -> {T} {{\n%0 = "my.op"(%a) : ({T}) -> {T}\nreturn %0 : {T} }}')
    refused, accepted = cli(command, path), cli(command, path, "--allow-unregistered-dialect")
    assert refused.status == 1 and "--allow-unregistered-dialect" in refused.err
    assert accepted.status == 0 and "no sharding rule is known for my.op" in " ".join(
        (accepted.out + accepted.err).split()
    )


@pytest.mark.parametrize("arguments", ["show", "partition", "cost", "explain", "search --budget 2"])
@pytest.mark.parametrize("inputs", ["", "%a: tensor<8xf32>"])
def test_a_table_without_rows_is_not_printed(arguments: str, inputs: str, cli: Cli, put: Put) -> None:
    """A program without arguments and results, and one without results."""
    command, *options = arguments.split()
    path = put(f'sdy.mesh @mesh = <["x"=2]>\nfunc.func @main({inputs}) {{\n  return\n}}')
    found = cli(command, path, *options)
    assert found.status == 0, found.err
    lines = found.out.splitlines()
    rules = [at for at, line in enumerate(lines) if line.strip() and not line.strip(" ─━╇")]
    assert all(lines[at + 1 : at + 2] and lines[at + 1].strip() for at in rules), found.out
    assert lines[-1].strip()
