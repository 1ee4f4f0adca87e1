"""Shardings by name on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .command_line import Cli

TEXT = """func.func @main(%x: tensor<8x16xf32> loc("x"), %w: tensor<16x32xf32> loc("params['w1']")) -> tensor<8x32xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}"""
MLP = Path(__file__).parents[3] / "examples" / "mlp.mlir"
TILED = TEXT.replace(
    'tensor<8x16xf32> loc("x")',
    'tensor<8x16xf32> {mhlo.sharding = "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"} loc("x")',
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "plain.mlir"
    path.write_text(TEXT)
    return path


SHARD = ["--mesh", "data=4,model=2", "--shard", "x=data", "--shard", "params.*=None,model"]


def test_show(cli: Cli, file: Path) -> None:
    found = cli("show", file, *SHARD, "--json")
    assert found.status == 0
    rows = json.loads(found.out)
    assert [row["sharding"] for row in rows["inputs"]] == ['[{"data"}, {}]', '[{}, {"model"}]']
    assert rows["outputs"][0]["sharding"] == '[{"data"}, {"model"}]'


def test_propagate_and_partition(cli: Cli, file: Path) -> None:
    assert 'sdy.sharding<@mesh, [{"data"}, {"model"}]>' in cli("propagate", file, *SHARD).out
    assert cli("partition", file, *SHARD, "-o", "-").out.count("tensor<2x16xf32>") > 0


def test_the_mesh_of_the_program_is_enough(cli: Cli) -> None:
    found = cli("propagate", MLP, "--shard", "params['w2']=model+data,?", "--shard", 'result=[{"data"}p1, {?}]')
    assert 'sdy.sharding<@mesh, [{"model", "data"}, {}]>' in found.out


def test_tilings_are_over_the_mesh_too(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "tiled.mlir"
    path.write_text(TILED)
    found = cli("propagate", path, "--mesh", "data=4,model=2", "--shard", "params=None,model")
    assert 'sdy.sharding<@mesh, [{"data"}, {}]>' in found.out
    assert 'sdy.sharding<@mesh, [{}, {"model"}]>' in found.out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--shard", "x"], "got --shard x, needed the name of an input or output and its sharding, like x=data,None"),
        (["--mesh", "data=4", "--shard", "y=data"], "got 'y', which matches no input or output, needed"),
        (["--shard", "x=data"], "finding the mesh of a PartitionSpec: got a module without a mesh"),
        (["--mesh", "data=4", "--shard", "x=model"], "got unknown axis name \"model\", needed one of 'data'"),
        (["--mesh", "data=4"], "applying the mesh data=4: got a module without GSPMD's annotations"),
    ],
)
def test_what_is_refused(cli: Cli, file: Path, flags: list[str], message: str) -> None:
    found = cli("show", file, *flags)
    assert found.status in (1, 2)
    assert message in found.err
    assert "Traceback" not in found.err


def test_running_the_example_takes_none(cli: Cli) -> None:
    assert "got --shard for the example" in cli("run", "example", "--shard", "x=data").err


@pytest.mark.parametrize("flags", [["--module", "foo"], ["--isolate"], ["--allow-unregistered-dialect"]], ids=str)
@pytest.mark.parametrize(
    "command", ["propagate", "show", "explain", "diff", "partition", "cost", "report", "search", "run"]
)
def test_the_example_refuses_the_options_of_files(cli: Cli, command: str, flags: list[str]) -> None:
    found = cli(command, "example", *flags)
    assert found.status == 2
    assert f"got {flags[0]} for the example, needed it for a file alone" in found.err


@pytest.mark.parametrize("command", ["propagate", "show", "explain", "diff", "partition", "report", "run"])
def test_the_mesh_of_the_example_has_the_sizes_that_it_is_given(cli: Cli, command: str) -> None:
    found = cli(command, "example", "--mesh", "data=2")
    assert found.status == 2
    assert "got --mesh for the example, needed the sizes of its axes" in found.err
    assert f"try: pyshardy {command} example --data 4 --model 2" in found.err


@pytest.mark.slow
@pytest.mark.parametrize("flags", [["--isolate"], ["--allow-unregistered-dialect"]], ids=str)
def test_options_of_files_are_for_the_second_program(cli: Cli, tmp_path: Path, flags: list[str]) -> None:
    missing = tmp_path / "missing.mlir"
    for command in (["diff", "example", missing], ["report", "example", "--compare", missing]):
        found = cli(*command, *flags, "--layers", "1")
        assert "missing.mlir" in found.err and "for the example" not in found.err
