"""`pyshardy show` and `pyshardy propagate`, and what every command refuses."""

from __future__ import annotations

import io
import json
import os
import re
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import pyshardy
from pyshardy.cli import opt
from pyshardy.cli.main import main
from pyshardy.errors import InvalidModuleError
from pyshardy.frontend.origins import origins_of
from pyshardy.propagation.options import StrategyOption
from pyshardy.report.summary import Summary
from pyshardy.report.tables import summary_text
from support.tables import column, tables_in

from .command_line import Cli, Outcome, Piped, Terminal, TerminalOfBytes

MLP = Path(__file__).parents[3] / "examples" / "mlp.mlir"
MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'
T = "tensor<8x4xf32>"


def on(sharding: str) -> str:
    return f"{{sdy.sharding = #sdy.sharding<{sharding}>}}"


def negate(sharding: str, mesh: str = MESH, type: str = T) -> str:
    """A module whose argument has that sharding."""
    return f"""{mesh}func.func @main(%a: {type} {on(sharding)}) -> {type} {{
  %0 = stablehlo.negate %a : {type}
  return %0 : {type}
}}
"""


def run_without(stream: int, *args: Any, module: str = "pyshardy.cli.main") -> subprocess.CompletedProcess[bytes]:
    """Run a command line in a process of which standard output (1) or standard error (2) is closed."""
    command = ["sh", "-c", f'exec "$@" {stream}>&-', "sh", sys.executable, "-m", module, *map(str, args)]
    return subprocess.run(command, cwd=MLP.parents[1], capture_output=True, check=False)


def run_process(*args: Any, module: str = "pyshardy.cli.main", **options: Any) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", module, *map(str, args)]
    return subprocess.run(command, cwd=MLP.parents[1], stderr=subprocess.PIPE, check=False, **options)


# What is refused

NOT_MODULES = {
    "text": ("this is no MLIR", "reading a module: got custom op 'this' is unknown (tried 'builtin.this' as well), "
             "needed StableHLO, such as jax.jit(f).lower(...).as_text() gives\n  at {path}:1:1"),
    "bytes": (b"\xff\xfe", "reading a module: got bytes that are neither UTF-8 text nor MLIR bytecode, needed "
              "StableHLO as text (.mlir) or as MLIR bytecode, HLO as text or .pb, or an Exported of jax.export\n"
              "  at {path}, byte 0"),
    "nothing": ("", "looking for the main function: got a module without functions, needed a function named @main, or "
                "exactly one function"),
    "two functions": ("func.func @f() { return }\nfunc.func @g() { return }", "looking for the main function: got the "
                      "functions @f, @g, needed a function named @main, or exactly one function"),
    "a declaration": (f"func.func private @main({T}) -> {T}", "looking for the main function: got a module without "
                      "functions, needed a function named @main, or exactly one function"),
    "unknown axis": (negate('@mesh, [{"z"}, {}]'), "reading a module: got 'func.func' op arg 0 - unknown axis name: "
                     '"z", needed an axis of the mesh that the sharding is on\n  at {path}:2:1'),
    "axis twice": (negate('@mesh, [{"x"}, {"x"}]'), "reading a module: got 'func.func' op arg 0 - duplicate axis ref: "
                   '"x", needed every axis at most once in a sharding\n  at {path}:2:1'),
    "rank": (negate('@mesh, [{"x"}]'), "reading a module: got 'func.func' op arg 0 - sharding doesn't match tensor "
             "rank: 1 != 2, needed one dimension sharding for every dimension of the tensor\n  at {path}:2:1"),
    "unknown mesh": (negate('@other, [{"x"}, {}]'), "reading a module: got 'func.func' op arg 0 - unknown mesh: @other, "
                     "needed a mesh that the module defines\n  at {path}:2:1"),
    "axis twice in a mesh": ('sdy.mesh @mesh = <["x"=4, "x"=2]>', "reading a module: got custom op 'sdy.mesh' "
                             'duplicate axis name: "x", needed every axis once in a mesh\n  at {path}:1:18'),
    "dynamic shape": (negate("@mesh, [{}, {}]", type="tensor<?x4xf32>"), "'stablehlo.negate' op has a result of type "
                      "tensor<?x4xf32>: propagation does not support a shape that is not static\n  at {path}:3:8"),
    "recursion": (f"func.func @main(%a: {T}) -> {T} {{\n%0 = call @main(%a) : ({T}) -> {T}\nreturn %0 : {T} }}",
                  "'func.func' op calls itself: @main -> @main\n  at {path}:1:1"),
}  # fmt: skip


@pytest.mark.parametrize("command", ["show", "propagate", "partition", "run"])
@pytest.mark.parametrize("case", NOT_MODULES)
def test_a_module_that_makes_no_sense_is_refused_with_one_message(
    case: str, command: str, cli: Cli, tmp_path: Path
) -> None:
    content, message = NOT_MODULES[case]
    path = tmp_path / "in.mlir"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    assert cli(command, path) == Outcome(1, "", f"error: {message.format(path=path)}\n")


@pytest.mark.parametrize("before", [None, "what was there"])
@pytest.mark.parametrize("case", NOT_MODULES)
def test_a_refused_module_leaves_the_output_as_it_was(case: str, before: str | None, cli: Cli, tmp_path: Path) -> None:
    content, _ = NOT_MODULES[case]
    path, output = tmp_path / "in.mlir", tmp_path / "out.mlir"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    if before is not None:
        output.write_text(before)
    assert cli("propagate", path, "-o", output).status == 1
    assert (output.read_text() if output.exists() else None) == before
    assert {file.name for file in tmp_path.iterdir()} == {"in.mlir"} | ({"out.mlir"} if before else set())


def test_a_refused_module_from_standard_input_has_no_file_name(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n  oops")))
    message = "error: reading a module: got custom op 'oops' is unknown (tried 'builtin.oops' as well), needed "
    message += "StableHLO, such as jax.jit(f).lower(...).as_text() gives\n  at -:2:3\n"
    assert cli("show", "-") == Outcome(1, "", message)


HELP = "\n  try: pyshardy{} --help"
WRONG_COMMAND_LINES = [
    ([], "the following arguments are required: COMMAND" + HELP.format("")),
    (["show"], "the following arguments are required: FILE|example" + HELP.format(" show")),
    (["run", MLP, "--tolerance"], "argument --tolerance: expected one argument" + HELP.format(" run")),
    (["run", MLP, "--tolerance", "x"], "argument --tolerance: got 'x', needed a number from 0" + HELP.format(" run")),
    (["run", MLP, "--tolerance", "nan"],
     "argument --tolerance: got 'nan', needed a number from 0" + HELP.format(" run")),
    (["run", MLP, "--tolerance=-1"], "argument --tolerance: got '-1', needed a number from 0" + HELP.format(" run")),
    (["run", MLP, "--seed=-1"], "argument --seed: got '-1', needed a whole number from 0" + HELP.format(" run")),
    (["run", MLP, "--seed", "1.5"], "argument --seed: got '1.5', needed a whole number from 0" + HELP.format(" run")),
    (["propagate", MLP, "-o"], "argument -o/--output: expected one argument" + HELP.format(" propagate")),
]  # fmt: skip


@pytest.mark.parametrize(("args", "message"), WRONG_COMMAND_LINES)
def test_a_command_line_that_makes_no_sense_is_refused(args: list[Any], message: str, cli: Cli) -> None:
    assert cli(*args) == Outcome(2, "", f"error: reading the command line: {message}\n")


@pytest.mark.parametrize("command", ["show", "propagate", "partition", "run"])
@pytest.mark.parametrize(
    ("extra", "hint"),
    [
        ("--nonsense", "pyshardy --help"),
        ("--strat=basic", "--strategy"),
        ("-x", "pyshardy --help"),
        ("second.mlir", "pyshardy --help"),
    ],
)
def test_an_unknown_flag_is_refused(extra: str, hint: str, command: str, cli: Cli) -> None:
    message = f"error: reading the command line: got unknown argument '{extra}'\n  try: {hint}\n"
    assert cli(command, MLP, extra) == Outcome(2, "", message)


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["propagat", MLP], "propagate"),
        (["show", MLP, "--strategy", "agressive"], "aggressive"),
        (["completion", "bsh"], "bash"),
        (["show", "example", "--layer", "2"], "--layers"),
        (["show", "example", "--layers", "1", "--stratgy=basic"], "--strategy"),
    ],
)
def test_a_misspelled_command_flag_or_value_is_found(args: list[Any], hint: str, cli: Cli) -> None:
    found = cli(*args)
    assert (found.status, found.out) == (2, "")
    assert found.err.startswith("error: reading the command line: ") and found.err.endswith(f"\n  try: {hint}\n")


def test_an_unknown_command_is_refused(cli: Cli) -> None:
    found = cli("divide", MLP)
    assert (found.status, found.out) == (2, "")
    assert re.fullmatch(
        r"error: reading the command line: argument COMMAND: invalid choice: 'divide' "
        r"\(choose from '?propagate'?, '?show'?, '?explain'?, '?diff'?, '?partition'?, '?cost'?, '?report'?, '?search'?, '?run'?, '?completion'?\)\n  try: pyshardy --help\n",
        found.err,
    )


def test_an_unknown_strategy_is_refused(cli: Cli) -> None:
    found = cli("show", MLP, "--strategy", "bold")
    assert (found.status, found.out) == (2, "")
    assert re.fullmatch(
        r"error: reading the command line: argument --strategy: invalid choice: 'bold' "
        r"\(choose from '?basic'?, '?aggressive'?, '?basic-then-aggressive'?\)\n  try: pyshardy show --help\n",
        found.err,
    )


@pytest.mark.parametrize("command", ["show", "propagate", "partition", "run"])
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("missing.mlir", "reading {path}: got no such file"),
        ("in.mlir/more", "reading {path}: got not a directory"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(
    source: str, message: str, command: str, cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "in.mlir").write_text(negate('@mesh, [{"x"}, {}]'))
    path = tmp_path / source
    found = cli(command, path)
    assert (found.status, found.out) == (2, "")
    needed = "a readable file" if "more" in source else "a file with a StableHLO module"
    assert found.err == f"error: {message.format(path=path)}, needed {needed}\n"


def test_an_empty_file_name_is_refused(cli: Cli) -> None:
    message = "error: reading a file: got an empty name, needed a file with a StableHLO module\n"
    assert cli("show", "") == Outcome(2, "", message)


@pytest.mark.parametrize(
    ("output", "reason"),
    [("missing/out.mlir", "no such file or directory"), ("folder", "is a directory"),
     ("file/out.mlir", "not a directory")],
)  # fmt: skip
def test_an_output_that_cannot_be_written_is_refused(output: str, reason: str, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("what was there")
    path = tmp_path / output
    message = f"error: writing {path}: got {reason}, needed a place that can be written to\n"
    assert cli("propagate", MLP, "-o", path) == Outcome(2, "", message)
    assert sorted(file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*")) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "what was there"


UNKNOWN_SIZE = """func.func @main(%a: tensor<8x!shape.shape>) -> tensor<8x!shape.shape> {
  return %a : tensor<8x!shape.shape>
}"""


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_nothing_is_written_of_which_the_tables_cannot_be_made(flags: list[str], cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "in.mlir").write_text(UNKNOWN_SIZE)
    message = (
        "error: looking up the size of an element type: got !shape.shape, needed a type of known size\n  at arg0\n"
    )
    output = tmp_path / "out.mlir"
    assert cli("propagate", tmp_path / "in.mlir", "-o", output, *flags) == Outcome(1, "", message)
    assert not output.exists()


@pytest.mark.parametrize("command", [["propagate"], ["partition"], ["opt"]])
def test_an_output_that_is_no_file_is_not_replaced(command: list[str], cli: Cli, tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    if command == ["opt"]:
        assert opt.main([str(MLP), "-o", str(link)]) == 0
    else:
        assert cli(*command, MLP, "-o", link).status == 0
    reader.join()
    assert b"module {" in found[0]
    assert stat.S_ISFIFO(link.stat().st_mode) and link.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]


def test_a_result_that_is_no_valid_module_is_not_written(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: pyshardy.Module) -> None:
        raise InvalidModuleError("verifying a module", got="nonsense")

    monkeypatch.setattr(pyshardy.Module, "verify", refuse)
    expected = Outcome(1, "", "error: verifying a module: got nonsense\n")
    assert cli("propagate", MLP) == cli("propagate", MLP, "-o", tmp_path / "out.mlir") == expected
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_is_no_traceback(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pyshardy.api.propagate", interrupt)
    assert cli("show", MLP) == Outcome(130, "", "interrupted\n")


PROCESSES = [
    (["show", MLP], "pyshardy.cli.main"),
    (["propagate", MLP], "pyshardy.cli.main"),
    ([MLP], "pyshardy.opt"),
]


@pytest.mark.parametrize(("args", "module"), PROCESSES)
def test_a_reader_that_goes_away_is_no_error(args: list[Any], module: str) -> None:
    read, write = os.pipe()
    os.close(read)
    found = run_process(*args, module=module, stdout=write)
    os.close(write)
    assert (found.returncode, found.stderr) == (1, b"")


@pytest.mark.parametrize(("args", "module"), PROCESSES)
def test_a_closed_output_is_reported(args: list[Any], module: str) -> None:
    found = run_without(1, *args, module=module)
    assert (found.returncode, found.stderr) == (1, b"error: writing to standard output: got it is closed\n")


def test_a_closed_output_does_not_matter_where_nothing_goes_there(tmp_path: Path) -> None:
    path = tmp_path / "out.mlir"
    found = run_without(1, "propagate", MLP, "--no-locations", "-o", path)
    assert (found.returncode, found.stderr) == (0, b"")
    assert path.read_text() == pyshardy.propagate(pyshardy.load(MLP)).module.text()


@pytest.mark.parametrize("module", ["pyshardy.cli.main", "pyshardy.opt"])
def test_without_standard_error_the_status_says_it(module: str) -> None:
    found = run_without(2, *(["show", "missing"] if module.endswith("main") else ["missing"]), module=module)
    assert (found.returncode, found.stdout) == (2, b"")


def test_a_terminal_that_has_few_characters_gets_others_escaped(tmp_path: Path) -> None:
    """But for the signs that tables are made of, for which others stand."""
    (tmp_path / "in.mlir").write_text(MLP.read_text().replace("['w1']", "['größe']"))
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    found = run_process("show", tmp_path / "in.mlir", stdout=subprocess.PIPE, env=environment)
    assert (found.returncode, found.stderr) == (0, b"")
    assert b"params['gr\\xf6\\xdfe']" in found.stdout
    assert b"\\u" not in found.stdout and b"\n----" in found.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize(("args", "module"), PROCESSES)
def test_a_full_disk_is_reported(args: list[Any], module: str) -> None:
    with open("/dev/full", "wb") as full:
        found = run_process(*args, module=module, stdout=full)
    message = b"error: writing to standard output: got no space left on device\n"
    assert (found.returncode, found.stderr) == (1, message)


# What works


def summary_of_mlp(with_origins: bool = True) -> Summary:
    """What is shown of the example file."""
    result = pyshardy.propagate(pyshardy.load(MLP))
    return result.summary.with_origins(*origins_of(result.before, result.options)) if with_origins else result.summary


def test_show_prints_the_tables_of_the_library_with_origins_and_nothing_else(cli: Cli) -> None:
    found = cli("show", MLP)
    assert found == Outcome(0, summary_text(summary_of_mlp()), "")
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


def test_progress_goes_to_standard_error_on_a_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = cli("propagate", MLP).out
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    found = cli("propagate", MLP)
    assert (found.status, found.out) == (0, expected)
    assert "reading" in sys.stderr.getvalue()
    assert "propagating" in sys.stderr.getvalue()


def test_tables_have_colors_on_a_terminal_alone(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in cli("show", MLP).out
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert main(["show", str(MLP)]) == 0
    assert "\x1b[" in sys.stdout.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert main(["show", str(MLP)]) == 0
    assert "\x1b" not in sys.stdout.getvalue() and "P('data')" in sys.stdout.getvalue()


@pytest.mark.parametrize("terminal", [Piped, Terminal])
@pytest.mark.parametrize("width", [80, 200])
def test_tables_are_as_wide_as_columns_says(width: int, terminal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", terminal())
    assert main(["show", "example", "--layers", "3", "--width", "16", "--heads", "2", "--vocabulary", "32"]) == 0
    text = sys.stdout.getvalue()
    (row,) = [row for row in tables_in(text)["inputs"] if row["name"].startswith("params") and "w1" in row["name"]]
    assert (row["name"], row[""], row["sharding"]) == ("params['layers'][0..2]['w1']", "×3", "P(None, 'model')")
    assert ("on one device" in row) == (width == 200)
    assert 60 < max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize("columns", ["", "0", "-80", "x", "80.5", "10000000000"])
def test_columns_that_are_no_width_do_not_count(columns: str, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    expected = cli("show", MLP)
    monkeypatch.setenv("COLUMNS", columns)
    assert cli("show", MLP) == expected


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
