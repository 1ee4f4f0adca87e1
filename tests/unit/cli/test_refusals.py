"""What every command refuses: with one message, and without a trace of a result."""

from __future__ import annotations

import io
import os
import stat
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import pyshardy
from pyshardy.cli import opt
from pyshardy.errors import InvalidModuleError

from .command_line import Cli, Outcome
from .sample_modules import MLP, T, negate

NOT_MODULES = {
    "text": ("this is no MLIR", "reading a module: got custom op 'this' is unknown (tried 'builtin.this' as well), "
             "needed StableHLO, such as jax.jit(f).lower(...).as_text() gives\n  at {path}:1:1"),
    "bytes": (b"\xff\xfe", "reading a module: got bytes that are neither UTF-8 text nor MLIR bytecode, needed "
              "StableHLO as text (.mlir) or as MLIR bytecode, HLO as text or .pb, or an Exported of jax.export\n"
              "  at {path}, byte 0"),
    "nothing": ("", "reading a module: got nothing: it is empty, needed StableHLO as text or bytecode, HLO, or what "
                "jax.export writes\n  at {path}"),
    "two functions": ("func.func @f() { return }\nfunc.func @g() { return }", "looking for the main function: got the "
                      "functions @f, @g, needed a function named @main, or exactly one that is public"),
    "a declaration": (f"func.func private @main({T}) -> {T}", "looking for the main function: got a module without "
                      "functions, needed a function named @main, or exactly one that is public"),
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


@pytest.mark.slow_but_for("text-show")
@pytest.mark.parametrize("command", ["show", "propagate", "partition", "run"])
@pytest.mark.parametrize("case", NOT_MODULES)
def test_a_module_that_makes_no_sense_is_refused_with_one_message(
    case: str, command: str, cli: Cli, tmp_path: Path
) -> None:
    content, message = NOT_MODULES[case]
    path = tmp_path / "in.mlir"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    assert cli(command, path) == Outcome(1, "", f"error: {message.format(path=path)}\n")


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_file_of_something_else_is_refused_with_what_is_needed(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "README.md").write_text("# A page\n")
    found = cli("show", tmp_path / "README.md")
    assert (found.status, found.out) == (1, "")
    needed = "needed StableHLO, such as jax.jit(f).lower(...).as_text() gives"
    assert (
        found.err == f"error: reading a module: got invalid attribute name, {needed}\n  at {tmp_path}/README.md:1:1\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["explain", MLP, "w9"], "\n  try: x, params['w1'], params['w2'], result, mlp.mlir:8\n"),
        (["show", MLP, "--values", "foo"], "\n  try: x, params['w1'], params['w2'], "),
        (["show", MLP, "--mesh", "data=3"], "which has a mesh already, needed mhlo.sharding with tilings"),
    ],
)  # fmt: skip
def test_messages_say_what_to_try(args: list[Any], message: str, cli: Cli) -> None:
    found = cli(*args)
    assert (found.status, found.out) == (2, "")
    assert message in found.err


@pytest.mark.slow
@pytest.mark.parametrize(("args", "message"), WRONG_COMMAND_LINES)
def test_a_command_line_that_makes_no_sense_is_refused(args: list[Any], message: str, cli: Cli) -> None:
    assert cli(*args) == Outcome(2, "", f"error: reading the command line: {message}\n")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["show", "propagate", "partition", "run"])
@pytest.mark.parametrize(
    ("extra", "hint"),
    [
        ("--nonsense", "pyshardy {command} --help"),
        ("--strat=basic", "--strategy"),
        ("-x", "pyshardy {command} --help"),
        ("second.mlir", "pyshardy {command} --help"),
    ],
)
def test_an_unknown_flag_is_refused(extra: str, hint: str, command: str, cli: Cli) -> None:
    hint = hint.format(command=command)
    message = f"error: reading the command line: got unknown argument '{extra}'\n  try: {hint}\n"
    assert cli(command, MLP, extra) == Outcome(2, "", message)


@pytest.mark.slow
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


@pytest.mark.slow
def test_an_unknown_command_is_refused(cli: Cli) -> None:
    commands = "propagate, show, explain, diff, partition, cost, confirm, lock, check, doctor, report, search, run, watch, completion"
    message = f"error: reading the command line: got the command 'divide', needed one of {commands}\n"
    assert cli("divide", MLP) == Outcome(2, "", f"{message}  try: pyshardy --help\n")


@pytest.mark.slow
def test_an_unknown_strategy_is_refused(cli: Cli) -> None:
    message = (
        "got --strategy bold, needed one of basic, aggressive, basic-then-aggressive\n  try: pyshardy show --help\n"
    )
    assert cli("show", MLP, "--strategy", "bold") == Outcome(2, "", f"error: reading the command line: {message}")


@pytest.mark.slow
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


@pytest.mark.slow
def test_an_empty_file_name_is_refused(cli: Cli) -> None:
    message = "error: reading a file: got an empty name, needed a file with a StableHLO module\n"
    assert cli("show", "") == Outcome(2, "", message)


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_nothing_is_written_of_which_the_tables_cannot_be_made(flags: list[str], cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "in.mlir").write_text(UNKNOWN_SIZE)
    message = (
        "error: looking up the size of an element type: got !shape.shape, needed a type of known size\n  at arg0\n"
    )
    output = tmp_path / "out.mlir"
    assert cli("propagate", tmp_path / "in.mlir", "-o", output, *flags) == Outcome(1, "", message)
    assert not output.exists()


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_result_that_is_no_valid_module_is_not_written(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: pyshardy.Module) -> None:
        raise InvalidModuleError("verifying a module", got="nonsense")

    monkeypatch.setattr(pyshardy.Module, "verify", refuse)
    expected = Outcome(1, "", "error: verifying a module: got nonsense\n")
    assert cli("propagate", MLP) == cli("propagate", MLP, "-o", tmp_path / "out.mlir") == expected
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_interruption_is_no_traceback(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pyshardy.api.propagate", interrupt)
    assert cli("show", MLP) == Outcome(130, "", "interrupted\n")
