"""`pyshardy run`: a file or the example, on eight virtual devices and on one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyshardy.cli import run_command
from pyshardy.cli.main import main
from pyshardy.examples import transformer
from pyshardy.runtime import memory
from support.tables import tables_in

from .command_line import Cli, Outcome, Terminal
from .opt_command_line import Put

pytestmark = pytest.mark.slow

MLP = Path(__file__).parents[3] / "examples" / "mlp.mlir"
SMALL = "--layers=1 --width=16 --heads=2 --vocabulary=32 --batch=4 --sequence=8 --optimizer=sgd"
EXAMPLE = ["example", *SMALL.split()]
MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'
T = "tensor<8x4xf32>"
ROWS = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
NEGATE = f"{MESH}func.func @main(%a: {T} {ROWS}) -> {T} {{ %0 = stablehlo.negate %a : {T}\nreturn %0 : {T} }}"
MANUAL = f"""{MESH}func.func @main(%a: {T}) -> {T} {{
  %r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{"x"}}, {{}}]>] out_shardings=[<@mesh, [{{"x"}}, {{}}]>]
    manual_axes={{"x", "y"}} (%b: tensor<2x4xf32>) {{ sdy.return %b : tensor<2x4xf32> }} : ({T}) -> {T}
  return %r : {T}
}}"""
CHAOS = f"""{MESH}func.func @main(%x: tensor<8x64xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}},
                                  %w: tensor<64x64xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"y"}}, {{}}]>}}) -> tensor<8x64xf32> {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %result:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<8x64xf32>
  cond {{
    %last = stablehlo.constant dense<40> : tensor<i32>
    %go = stablehlo.compare LT, %i, %last : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %large = stablehlo.constant dense<20.0> : tensor<8x64xf32>
    %0 = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0]
      : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %1 = stablehlo.multiply %0, %large : tensor<8x64xf32>
    %2 = stablehlo.sine %1 : tensor<8x64xf32>
    stablehlo.return %j, %2 : tensor<i32>, tensor<8x64xf32>
  }}
  return %result#1 : tensor<8x64xf32>
}}"""


@pytest.fixture
def wrong_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Makes the last output of what eight devices compute wrong by an amount."""
    right = run_command.run

    def install(error: float) -> None:
        def run(*args: Any, **options: Any) -> list[Any]:
            *others, last = right(*args, **options)
            return [*others, last + error]

        monkeypatch.setattr(run_command, "run", run)

    return install


# A file


def test_a_file_runs_and_agrees_with_one_device(cli: Cli) -> None:
    found = cli("run", MLP)
    assert (found.status, found.err) == (0, "")
    assert found.out.startswith("function @main on 8 devices: data=4, model=2\n")
    assert found.verdict == "the output equals one device's within rounding"
    assert re.fullmatch(
        r"compared 1 output with one device: all agree; largest error \S+ in result \(0\.\d+ times the rounding error\)",
        cli("run", MLP, "--details").verdict,
    )
    timed = cli("run", MLP, "--times").out
    time = " ".join(timed[timed.index("\ntime: read ") :].split())  # it may be broken into lines
    assert re.search(r", run on 8 devices [\d.]+ m?s, run on one device [\d.]+ m?s, measure rounding [\d.]+ m?s ", time)


def test_json_holds_the_comparison(cli: Cli) -> None:
    found = cli("run", MLP, "--json")
    assert (found.status, found.err) == (0, "")
    data = json.loads(found.out)
    (output,) = data["comparison"].pop("outputs")
    assert data["comparison"] == {"equal": True, "verdict": "agree", "tolerance": None}
    assert (output["name"], output["verdict"]) == ("result", "agree")
    assert 0 < output["error_by_rounding"] < 2
    assert 0 < output["moved_by_rounding"] < output["least_noticed_in_one_value"] < 1e-4
    assert 0 < output["least_noticed_in_all_values"] < 1e-4
    assert 0 <= output["max_relative_error"] <= output["max_absolute_error"] < 1e-3
    assert [row["sharding"] for row in data["inputs"]] == ['[{"data"}, {}]', '[{}, {"model"}]', '[{"model"}, {}]']
    assert "stages" not in data
    stages = json.loads(cli("run", MLP, "--json", "--times").out)["stages"]
    assert [stage["name"] for stage in stages][-3:] == [
        "run on 8 devices", "run on one device", "measure rounding",
    ]  # fmt: skip


def test_a_wrong_result_is_noticed(cli: Cli, wrong_by: Callable[[float], None]) -> None:
    wrong_by(0.5)
    found = cli("run", MLP)
    assert (found.status, found.err) == (1, "")
    *_, wrong, verdict = found.out.splitlines()
    assert wrong == "output result: error 0.5"
    assert re.fullmatch(
        r"compared 1 output with one device: 1 differ; largest error 0\.5 in result \(\S+ times the rounding error\)",
        verdict,
    )
    comparison = json.loads(cli("run", MLP, "--json").out)["comparison"]
    assert comparison["equal"] is False
    assert comparison["outputs"][0]["max_absolute_error"] == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize(("tolerance", "status"), [("0", 1), ("0.01", 1), ("1", 0), ("inf", 0)])
def test_the_tolerance_decides(
    tolerance: str, status: int, cli: Cli, wrong_by: Callable[[float], None], tmp_path: Path
) -> None:
    wrong_by(0.25)
    (tmp_path / "in.mlir").write_text(NEGATE)
    found = cli("run", tmp_path / "in.mlir", "--tolerance", tolerance)
    assert found.status == status
    agrees = f"the output equals one device's within the tolerance {float(tolerance):g}"
    assert (
        found.verdict.startswith("compared 1 output with one device: 1 differ; ")
        if status
        else (found.verdict == agrees)
    )


def test_a_result_that_is_exact_agrees_without_tolerance(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "in.mlir").write_text(NEGATE)
    found = cli("run", tmp_path / "in.mlir", "--tolerance", "0")
    assert found.status == 0
    assert found.verdict == "the output equals one device's within the tolerance 0"
    expected = "compared 1 output with one device: all agree; largest error 0 in result (relative 0, tolerance 0)"
    assert cli("run", tmp_path / "in.mlir", "--tolerance", "0", "--details").verdict == expected


@pytest.fixture
def inputs_of_runs(monkeypatch: pytest.MonkeyPatch) -> list[list[np.ndarray]]:
    """The inputs of every run on eight devices from now on."""
    seen: list[list[np.ndarray]] = []
    original = run_command.run

    def run(partition: Any, *arrays: Any, **options: Any) -> Any:
        seen.append([np.asarray(array) for array in arrays])
        return original(partition, *arrays, **options)

    monkeypatch.setattr(run_command, "run", run)
    return seen


@pytest.mark.parametrize("names", [("a", "other"), ("a",), ("unnamed",)])
def test_inputs_come_from_a_file(
    names: tuple[str, ...], cli: Cli, tmp_path: Path, inputs_of_runs: list[list[np.ndarray]]
) -> None:
    (tmp_path / "in.mlir").write_text(NEGATE.replace(ROWS, f'{ROWS} loc("a")'))
    array = np.arange(32, dtype=np.float32).reshape(8, 4)
    np.savez(tmp_path / "in.npz", **{name: array + index for index, name in enumerate(names)})
    assert cli("run", tmp_path / "in.mlir", "--inputs", tmp_path / "in.npz").status == 0
    np.testing.assert_array_equal(inputs_of_runs, [[array]])


def test_the_seed_decides_about_random_inputs(cli: Cli, tmp_path: Path, inputs_of_runs: list[list[np.ndarray]]) -> None:
    (tmp_path / "in.mlir").write_text(NEGATE)
    for flags in ([], ["--seed", "0"], ["--seed=1"]):
        assert cli("run", tmp_path / "in.mlir", *flags).status == 0
    (default,), (zero,), (one,) = inputs_of_runs
    np.testing.assert_array_equal(default, zero)
    assert not np.array_equal(zero, one)


def test_what_one_device_cannot_run_is_not_compared(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "in.mlir").write_text(MANUAL)
    found = cli("run", tmp_path / "in.mlir")
    assert (found.status, found.err) == (0, "")
    message = "not compared with one device: a manual computation (shard_map), which is written per device"
    assert f"\nwarning: {message}\n" in found.out
    data = json.loads(cli("run", tmp_path / "in.mlir", "--json").out)
    assert (data["comparison"], data["warnings"]) == (None, [message])


def test_a_program_without_outputs_runs(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "in.mlir").write_text(f"{MESH}func.func @main(%a: {T} {ROWS}) {{ return }}")
    found = cli("run", tmp_path / "in.mlir")
    assert (found.status, found.err) == (0, "")
    assert "compared" not in found.out
    comparison = json.loads(cli("run", tmp_path / "in.mlir", "--json").out)["comparison"]
    assert comparison == {"equal": True, "verdict": "agree", "tolerance": None, "outputs": []}


NOT_RUN = {
    "too many devices": (NEGATE.replace('"x"=4', '"x"=8'), 2, "running a partitioned program: got 8 devices, needed 16"
                         "\n  try: on a CPU, set XLA_FLAGS=--xla_force_host_platform_device_count=16 before importing jax"),
    "element type": ("func.func @main(%a: tensor<4xf80>) { return }", 1, "running a module: got element type f80, "
                     "needed one that JAX has"),
    "dynamic shape": ("func.func @main(%a: tensor<?xf32>) { return }", 2, "drawing random inputs: got the dynamic shape "
                      "of arg0, needed static shapes"),
}  # fmt: skip


@pytest.mark.parametrize("case", NOT_RUN)
def test_what_cannot_run_is_refused(case: str, cli: Cli, tmp_path: Path) -> None:
    text, status, message = NOT_RUN[case]
    (tmp_path / "in.mlir").write_text(text)
    assert cli("run", tmp_path / "in.mlir") == Outcome(status, "", f"error: {message}\n")


def test_sub_axes_run_but_not_through_xlas_partitioner(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "in.mlir").write_text(NEGATE.replace('"x"}', '"x":(1)2}'))
    assert cli("run", tmp_path / "in.mlir").status == 0
    message = (
        'error: converting the sharding of arg0: got the sub-axis "x":(1)2, needed whole axes, as PartitionSpec has\n'
    )
    assert cli("run", tmp_path / "in.mlir", "--engine", "xla") == Outcome(1, "", message)


def test_what_xla_does_not_know_is_refused(cli: Cli, tmp_path: Path) -> None:
    call = f'"stablehlo.custom_call"(%a) {{call_target_name = "missing"}} : ({T}) -> {T} loc(unknown)'
    (tmp_path / "in.mlir").write_text(NEGATE.replace(f"stablehlo.negate %a : {T}", call))
    found = cli("run", tmp_path / "in.mlir")
    assert (found.status, found.out) == (1, "")
    assert re.fullmatch(
        r"error: running a module: got .*missing.*, needed a program that XLA can compile here\n", found.err
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "got no such file or directory"), (b"no archive", "got a file that is no archive")],
)
def test_inputs_that_are_no_archive_are_refused(content: bytes | None, reason: str, cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    if content is not None:
        path.write_bytes(content)
    found = cli("run", MLP, "--inputs", path)
    assert (found.status, found.out) == (2, "")
    start = re.escape(f"error: reading inputs from {path}: ")
    assert re.fullmatch(rf"{start}{reason}, needed an \.npz file of arrays\n", found.err)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.ones(3)}, "reading inputs from {path}: got the arrays x, needed one for each of arg0, arg1"),
        ({"arg0": np.ones((8, 4)), "arg1": np.ones(3)}, "reading the input arg1: got float64[3], needed float32[8, 4]"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(
    arrays: dict[str, np.ndarray], message: str, cli: Cli, tmp_path: Path
) -> None:
    path = tmp_path / "in.npz"
    np.savez(path, **arrays)
    (tmp_path / "in.mlir").write_text(f"{MESH}func.func @main(%a: {T}, %b: {T}) -> {T} {{ return %a : {T} }}")
    expected = Outcome(2, "", f"error: {message.format(path=path)}\n")
    assert cli("run", tmp_path / "in.mlir", "--inputs", path) == expected


# The example


def test_the_example_runs_and_agrees_with_one_device(cli: Cli) -> None:
    found = cli("run", *EXAMPLE)
    assert (found.status, found.err) == (0, "")
    *_, before, verdict, _, _, _, _ = found.out.splitlines()
    assert (before, verdict) == ("", "all 11 outputs equal one device's within rounding")
    sources = {row["source"].partition(":")[0] for row in tables_in(found.out)["largest collectives"]}
    assert sources == {"transformer.py"}
    rows = {row["name"]: row for row in tables_in(found.out)["inputs that are sharded"]}
    row = rows["params['layers'][0]['w2']"]
    assert (row["sharding"], row["given by"]) == ("P('model')", "params['layers'][0]['w1']")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("height", [24, 50])
def test_the_example_fits_a_screen(height: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 80 columns, with a line for the prompt."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", str(height))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", Terminal())
    sizes = ["--layers", "4", "--width", "32", "--heads", "2", "--vocabulary", "64", "--sequence", "8"]
    assert main(["run", "example", *sizes]) == 0
    text = sys.stdout.getvalue()
    lines = text.splitlines()
    assert max(map(len, lines[:-3])) <= 80  # the last lines hold the sizes that are given here
    assert len(lines) + 2 <= height  # the command that `make` shows, and the next prompt
    assert ("inputs that are sharded" in text) == (height == 50)
    assert "all 104 outputs equal one device's within rounding" in text


def test_the_example_ends_with_what_to_try_next(cli: Cli) -> None:
    found = cli("run", *EXAMPLE, "--no-check")
    *_, show, partition, own = found.out.splitlines()
    assert show.startswith("next: ") and own.strip().startswith("pyshardy show FILE ")
    for line in (show.removeprefix("next:"), partition):
        command, *_ = line.strip().split("  ")
        program, *arguments = command.split()
        assert program == "pyshardy" and cli(*arguments).status == 0


def test_the_example_as_json(cli: Cli) -> None:
    found = cli("run", *EXAMPLE, "--json", "--times", "--data", "2", "--model=4", "--learning_rate", "0.5")
    assert (found.status, found.err) == (0, "")
    data = json.loads(found.out)
    assert data["title"] == "module @jit_train_step"
    assert data["meshes"][0]["axes"] == [{"name": "data", "size": 2}, {"name": "model", "size": 4}]
    assert data["comparison"]["equal"] is True
    assert len(data["comparison"]["outputs"]) == len(data["outputs"]) == 11
    assert [stage["name"] for stage in data["stages"]] == [
        "lower", "read", "import", "propagate", "export", "write", "partition", "run on 8 devices", "run on one device",
        "measure rounding",
    ]  # fmt: skip


def test_a_wrong_result_of_the_example_is_noticed(cli: Cli, wrong_by: Callable[[float], None]) -> None:
    wrong_by(0.5)
    found = cli("run", *EXAMPLE)
    assert found.status == 1
    assert "\noutput result[2]: error 0.5\ncompared 11 outputs with one device: 1 differ; " in found.out


SIZES = "reading the sizes of the example: "
TRY = "\n  try: pyshardy run example --layers 4"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--nonsense", "3"], f"{SIZES}unrecognized arguments: --nonsense 3{TRY}"),
        (["more"], f"{SIZES}unrecognized arguments: more{TRY}"),
        (["--layers", "x"], f"{SIZES}argument --layers: invalid int value: 'x'{TRY}"),
        (["--layers"], f"{SIZES}argument --layers: expected one argument{TRY}"),
        (["--layers", "0"], f"{SIZES}layers, vocabulary, sequence and model must be at least 1{TRY}"),
        (["--heads=3"], f"{SIZES}heads must divide width: 3, 512{TRY}"),
        (["--data", "0"], f"{SIZES}data must divide batch: 0, 16{TRY}"),
        (["--data=-4"], f"{SIZES}data must divide batch: -4, 16{TRY}"),
        (["--optimizer", "lion"], f"{SIZES}optimizer must be adam or sgd: lion{TRY}"),
        (
            ["--inputs", "in.npz"],
            "reading the command line: got --inputs for the example, needed --inputs only for a file",
        ),
        (
            ["--data=16", "--layers=1"],
            "lowering the example: got the mesh data=16, model=2 needs 32 devices, JAX has 8; on a CPU, set "
            "XLA_FLAGS=--xla_force_host_platform_device_count=32 before importing jax",
        ),
    ],
)
def test_what_the_example_cannot_be_is_refused(flags: list[str], message: str, cli: Cli) -> None:
    assert cli("run", "example", *flags) == Outcome(2, "", f"error: {message}\n")


@pytest.mark.parametrize(
    ("command", "key", "value"),
    [
        ("propagate", "title", "module @jit_train_step"),
        ("show", "title", "module @jit_train_step"),
        ("partition", "device_count", 8),
    ],
)
def test_other_commands_take_the_example_too(command: str, key: str, value: Any, cli: Cli) -> None:
    found = cli(command, *EXAMPLE, "--json")
    assert (found.status, found.err) == (0, "")
    assert json.loads(found.out)[key] == value
    assert cli(command, "example", "--nonsense", "3") == Outcome(
        2, "", f"error: {SIZES}unrecognized arguments: --nonsense 3{TRY}\n"
    )


def test_help_lists_the_sizes_of_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    listed = capsys.readouterr().out.partition("sizes of the example:")[2].split()
    assert listed == [f"--{field.name}" for field in fields(transformer.Config)]


@pytest.mark.parametrize(
    ("flags", "devices", "status"),
    [("", "", 0), ("--xla_force_host_platform_device_count=4", "4", 2)],
)
def test_a_process_gets_as_many_devices_as_the_mesh_has_unless_told(flags: str, devices: str, status: int) -> None:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES", "JAX_PLATFORMS")
    }
    found = subprocess.run(
        [sys.executable, "-m", "pyshardy.cli.main", "run", str(MLP)],
        cwd=MLP.parents[1], env=environment | ({"XLA_FLAGS": flags} if flags else {}),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == status
    if status:
        assert found.stdout == ""
        assert f"got {devices} devices, needed 8" in found.stderr
    else:
        assert found.stderr == ""
        assert "the output equals one device's within rounding" in found.stdout


def test_of_chaos_nothing_is_said(cli: Cli, put: Put) -> None:
    found = cli("run", put(CHAOS))
    assert (found.status, found.err) == (3, "")
    *_, remark, verdict = found.out.splitlines()
    assert re.fullmatch(r"output result: cannot tell: rounding alone moves it by \d\d+%", remark)
    assert verdict.startswith("compared 1 output with one device: 1 cannot be judged; largest error ")
    comparison = json.loads(cli("run", put(CHAOS), "--json").out)["comparison"]
    assert (comparison["equal"], comparison["verdict"]) == (False, "cannot tell")
    assert comparison["outputs"][0]["verdict"] == "cannot tell"


def test_a_tolerance_decides_about_chaos_too(cli: Cli, put: Put) -> None:
    found = cli("run", put(CHAOS), "--tolerance", "100")
    assert (found.status, found.err) == (0, "")
    assert "measure rounding" not in found.out
    assert cli("run", put(CHAOS), "--tolerance", "0.001").status == 1


# Memory


@pytest.mark.parametrize(
    ("flags", "doing", "needed"),
    [
        ([], "comparing a program with one device (--no-check does not)", "1.1 KiB"),
        (["--no-check"], "running a program on 8 devices", "640 B"),
        (["--tolerance", "0.1"], "running a program on 8 devices", "640 B"),
    ],
)
def test_what_does_not_fit_is_refused(
    flags: list[str], doing: str, needed: str, cli: Cli, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 100)
    message = (
        f"error: {doing}: got a program that takes about {needed} of memory, needed one that fits in the 100 B that are "
        "free on this machine\n  try: a smaller program, or --force (force=True in Python) to run it all the same\n"
    )
    assert cli("run", put(NEGATE), *flags) == Outcome(2, "", message)
    assert cli("run", put(NEGATE), *flags, "--force").status == 0
