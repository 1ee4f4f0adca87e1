from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from pyshardy.cli.opt import help_text, main, parse_command, run_opt
from pyshardy.errors import UsageError
from pyshardy.ir.module import Module
from pyshardy.passes.pipelines import PIPELINES
from pyshardy.passes.table import PASSES

GOOD = """func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.sine %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
PRINTED = """module {
  func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.sine %arg0 : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
"""
EMPTY_PRINTED = "module {\n  func.func @f() {\n    return\n  }\n}\n"
BAD = "func.func @main() {\n  %0 = stablehlo.sine %b : tensor<8xf32>\n}\n"
RULE = "sdy.sharding_rule"
WITH_UNUSED = GOOD + "func.func private @unused() {\n  return\n}\n"
SHARDED = """sdy.mesh @m = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.sine %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
UNKNOWN = '"t.op"() : () -> ()\n'
GROUPED = """sdy.mesh @m = <["x"=2]>
func.func @main(%a: tensor<8xf32>, %b: tensor<4xf32>) {
  sdy.sharding_group %a group_id=1 : tensor<8xf32>
  sdy.sharding_group %b group_id=1 : tensor<4xf32>
  return
}
"""
GROUP_ERROR = "'sdy.sharding_group' op puts values of different shapes into the sharding group 1"

Put = Callable[..., str]
Given = Callable[[str], None]


class Outcome(NamedTuple):
    """What a command line did."""

    status: int
    out: str
    errors: str


def run(*argv: str) -> Outcome:
    stdout, stderr = io.BytesIO(), io.StringIO()
    status = run_opt(argv, stdout, stderr)
    return Outcome(status, stdout.getvalue().decode(errors="replace"), stderr.getvalue())


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Writes a module to a file and gives its path."""

    def write(content: str | bytes, name: str = "in.mlir") -> str:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Given:
    """Puts text on standard input."""

    def write(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return write


def test_without_passes_the_module_is_printed(put: Put) -> None:
    assert run(put(GOOD)) == Outcome(0, PRINTED, "")


@pytest.mark.parametrize("argv", [(), ("-",)])
def test_standard_input(given: Given, argv: tuple[str, ...]) -> None:
    given(GOOD)
    assert run(*argv) == Outcome(0, PRINTED, "")


def test_errors_in_standard_input_have_a_place(given: Given) -> None:
    given(BAD)
    found = run("-")
    assert (found.status, found.out) == (1, "")
    assert found.errors.startswith("-:2:23: error: use of undeclared SSA value name\n")


def test_bytecode_is_read_and_written(put: Put, tmp_path: Path) -> None:
    source = put(Module.parse(GOOD).bytecode(), "in.mlirbc")
    assert run(source) == Outcome(0, PRINTED, "")
    target = tmp_path / "out.mlirbc"
    assert run(source, "--emit-bytecode", "-o", str(target)) == Outcome(0, "", "")
    assert target.read_bytes().startswith(b"ML\xefR")
    assert run(str(target)).out == PRINTED


@pytest.mark.parametrize("dashes", ["-", "--"])
@pytest.mark.parametrize("order", ["before", "behind"])
def test_passes_run_with_one_dash_or_two_and_the_file_anywhere(put: Put, dashes: str, order: str) -> None:
    flag, source = f"{dashes}symbol-dce", put(WITH_UNUSED)
    assert run(*((flag, source) if order == "before" else (source, flag))) == Outcome(0, PRINTED, "")


def test_passes_run_in_the_order_of_the_command_line(put: Put) -> None:
    source, add, drop = put(GOOD), "-sdy-populate-op-sharding-rules", "-sdy-drop-sharding-rules"
    assert RULE in run(source, drop, add).out
    assert RULE not in run(source, add, drop).out
    assert RULE in run(source, add, drop, add).out
    assert RULE in run(source, drop, "-pass-pipeline=builtin.module(func.func(sdy-populate-op-sharding-rules))").out


def test_options_of_passes(put: Put) -> None:
    source = put(SHARDED)
    assert RULE not in run(source, "-sdy-basic-propagate").out
    found = run(source, "-sdy-basic-propagate=conservative-propagation=true keep-sharding-rules=true")
    assert RULE in found.out
    assert found.status == 0


def test_pipelines_are_named_like_passes(put: Put) -> None:
    found = run(put(SHARDED), "--sdy-propagation-pipeline")
    assert found.status == 0
    assert 'stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>}' in found.out


@pytest.mark.parametrize("flag", [("-pass-pipeline=symbol-dce",), ("--pass-pipeline", "builtin.module(symbol-dce)")])
def test_pass_pipelines_as_text(put: Put, flag: tuple[str, ...]) -> None:
    assert run(put(WITH_UNUSED), *flag) == Outcome(0, PRINTED, "")


def test_what_a_command_line_says() -> None:
    command = parse_command(
        ["-split-input-file", "--sdy-unflatten-call-graph=dedup-functions-fully=true", "a.mlir", "-o=b", "-symbol-dce"]
    )
    assert [pass_.name for pass_ in command.passes] == ["sdy-unflatten-call-graph", "symbol-dce"]
    assert command.flags == {"split-input-file"}
    assert (command.source, command.output) == ("a.mlir", "b")


@pytest.mark.parametrize(
    ("flags", "is_set"),
    [
        (["-split-input-file"], True),
        (["--split-input-file=true"], True),
        (["-split-input-file=false"], False),
        (["-split-input-file", "-split-input-file=false"], False),
        (["-split-input-file=false", "-split-input-file"], True),
    ],
)
def test_the_last_of_equal_flags_wins(flags: list[str], is_set: bool) -> None:
    assert ("split-input-file" in parse_command(flags).flags) == is_set


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["-zzz"], "reading the command line: got unknown flag '-zzz'\n  try: --help for the list of passes and flags"),
        (["--symbol-dse"], "reading the command line: got unknown flag '--symbol-dse'\n  try: -symbol-dce"),
        (
            ["-sdy-propagation-pipelin"],
            "reading the command line: got unknown flag '-sdy-propagation-pipelin'\n  try: -sdy-propagation-pipeline",
        ),
        (
            ["-verify-diagnostic=x"],
            "reading the command line: got unknown flag '-verify-diagnostic=x'\n  try: -verify-diagnostics",
        ),
        (["a", "b"], "reading the command line: got a second input 'b', needed one input"),
        (["-", "b"], "reading the command line: got a second input 'b', needed one input"),
        (["b", "-"], "reading the command line: got a second input '-', needed one input"),
        (["-o"], "reading the command line: got -o without a value, needed -o FILE"),
        (
            ["--pass-pipeline"],
            "reading the command line: got --pass-pipeline without a value, needed --pass-pipeline TEXT",
        ),
        (["-split-input-file=yes"], "reading the flag -split-input-file: got 'yes', needed true or false"),
        (["-symbol-dce=x"], "reading pass options: got 'x', needed name=value"),
        (["-symbol-dce=x=1"], "reading the options of symbol-dce: got 'x', needed no options"),
        (
            ["-sdy-unflatten-call-graph=dedup-functions-fully=maybe"],
            "reading option dedup-functions-fully of sdy-unflatten-call-graph: got 'maybe', needed true or false",
        ),
        (["-pass-pipeline=a b"], f"looking for a pass: got 'a', needed one of {', '.join(PASSES)}"),
        (
            ["-pass-pipeline=symbol-dce)"],
            "reading a pass pipeline: needed ','\n  symbol-dce)\n            ^",
        ),
    ],
)
def test_command_lines_that_make_no_sense(argv: list[str], message: str) -> None:
    assert run(*argv) == Outcome(2, "", f"error: {message}\n")


def test_parsing_alone_refuses_too() -> None:
    with pytest.raises(UsageError, match="unknown flag '-zzz'"):
        parse_command(["-zzz"])


def test_a_pass_that_cannot_run_with_its_options_is_a_wrong_command_line(put: Put) -> None:
    found = run(put(GOOD), "-canonicalize")
    assert (found.status, found.out) == (2, "")
    assert found.errors.startswith("error: running canonicalize: got no label in enable-patterns")


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    missing = tmp_path / "none.mlir"
    assert run(str(missing)) == Outcome(
        2, "", f"error: reading {missing}: got no such file, needed a file with a StableHLO module\n"
    )
    assert run(str(tmp_path)) == Outcome(
        2, "", f"error: reading {tmp_path}: got a directory, needed a file with a StableHLO module\n"
    )


def test_input_that_cannot_be_parsed_is_shown_with_its_line(put: Put) -> None:
    source = put(BAD)
    assert run(source, "-symbol-dce") == Outcome(
        1,
        "",
        f"{source}:2:23: error: use of undeclared SSA value name\n"
        f"  %0 = stablehlo.sine %b : tensor<8xf32>\n{' ' * 22}^\n",
    )


def test_input_that_is_neither_text_nor_bytecode(put: Put) -> None:
    source = put(b"\x00\xff\xfe")
    found = run(source)
    assert (found.status, found.out) == (1, "")
    assert found.errors == (
        "error: reading a module: got bytes that are neither UTF-8 text nor MLIR bytecode, needed StableHLO as text "
        f"(.mlir) or as MLIR bytecode\n  at {source}, byte 1\n"
    )


def test_a_module_that_a_pass_refuses_is_shown_with_its_notes(put: Put) -> None:
    source = put(GROUPED)
    assert run(source, "-sdy-sharding-group-import") == Outcome(
        1,
        "",
        f"{source}:4:3: error: {GROUP_ERROR}\n  sdy.sharding_group %b group_id=1 : tensor<4xf32>\n  ^\n"
        f"{source}:3:3: note: first member of the group\n  sdy.sharding_group %a group_id=1 : tensor<8xf32>\n  ^\n",
    )


def test_places_in_other_files_are_kept(put: Put) -> None:
    text = GROUPED.replace(": tensor<4xf32>\n", ': tensor<4xf32> loc("model.py":7:9)\n')
    source = put(text)
    errors = run(source, "-sdy-sharding-group-import").errors
    assert errors.startswith(f"model.py:7:9: error: {GROUP_ERROR}\n{source}:3:3: note: first member of the group\n")


def test_warnings_go_to_the_error_output_and_the_module_is_printed(put: Put) -> None:
    text = GOOD.replace("stablehlo.sine %a :", "stablehlo.custom_call @odd(%a) : (tensor<8xf32>) ->")
    source = put(text)
    found = run(source, "-sdy-basic-propagate")
    assert found.status == 0
    assert "@odd" in found.out
    assert found.errors.startswith(
        f"{source}:2:8: warning: no sharding rule is known for custom call @odd (1 in the module)"
    )


def test_output_goes_to_a_file(put: Put, tmp_path: Path) -> None:
    target = tmp_path / "out.mlir"
    assert run(put(GOOD), "-o", str(target)) == Outcome(0, "", "")
    assert target.read_text() == PRINTED


def test_a_dash_as_output_is_the_standard_output(put: Put) -> None:
    assert run(put(GOOD), "-o", "-") == Outcome(0, PRINTED, "")


@pytest.mark.parametrize("text", [BAD, f"{GOOD}// -----\n{BAD}", f"{BAD}// -----\n{GOOD}"])
def test_a_failure_leaves_the_output_as_it_was(put: Put, tmp_path: Path, text: str) -> None:
    target = tmp_path / "out.mlir"
    target.write_text("old")
    source = put(text)
    found = run(source, "-split-input-file", "-o", str(target))
    assert (found.status, found.out) == (1, "")
    assert target.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.mlir", "out.mlir"]
    assert run(source, "-split-input-file").out == ""


def test_an_output_that_cannot_be_written(put: Put, tmp_path: Path) -> None:
    target = tmp_path / "no" / "out.mlir"
    assert run(put(GOOD), "-o", str(target)) == Outcome(
        2,
        "",
        f"error: writing {target}: got no such file or directory, needed a place that can be written to\n",
    )


def test_generic_form(put: Put) -> None:
    out = run(put(GOOD), "-mlir-print-op-generic").out
    assert '"stablehlo.sine"(%arg0)' in out
    assert Module.parse(out).text() == PRINTED


def test_locations(put: Put) -> None:
    source = put(GOOD)
    assert "loc(" not in run(source).out
    assert '"-":2:8' in run(source, "-mlir-print-debuginfo").out


def test_ops_of_unknown_dialects(put: Put) -> None:
    source = put(UNKNOWN)
    found = run(source)
    assert (found.status, found.out) == (1, "")
    assert found.errors.startswith(f"{source}:1:7: error: operation being parsed with an unregistered dialect.")
    assert "use -allow-unregistered-dialect" in found.errors
    assert run(source, "--allow-unregistered-dialect") == Outcome(0, 'module {\n  "t.op"() : () -> ()\n}\n', "")


FILE = f"{GOOD}// -----\nfunc.func @f() {{\n  return\n}}\n"


def test_a_file_is_split_into_modules(put: Put) -> None:
    assert run(put(FILE), "-split-input-file") == Outcome(0, f"{PRINTED}\n// -----\n\n{EMPTY_PRINTED}", "")


def test_the_parts_of_what_is_printed_are_read_again(put: Put) -> None:
    once = run(put(FILE), "-split-input-file").out
    assert run(put(once), "-split-input-file").out == once


def test_passes_run_on_every_part(put: Put) -> None:
    found = run(put(f"{WITH_UNUSED}// -----\n{WITH_UNUSED}"), "-split-input-file", "-symbol-dce")
    assert found.out == f"{PRINTED}\n// -----\n\n{PRINTED}"


@pytest.mark.parametrize("separator", ["// -----", "// ------", "// ----- what follows"])
def test_separators(put: Put, separator: str) -> None:
    assert run(put(FILE.replace("// -----", separator)), "-split-input-file").out.count("module {") == 2


@pytest.mark.parametrize("separator", ["//-----", " // -----", "// ----", "// - ----"])
def test_what_does_not_separate(put: Put, separator: str) -> None:
    assert run(put(FILE.replace("// -----", separator)), "-split-input-file").out.count("module {") == 1


def test_without_the_flag_nothing_is_split(put: Put) -> None:
    assert run(put(FILE)).out.count("module {") == 1


def test_lines_are_counted_from_the_start_of_the_file(put: Put) -> None:
    source = put(f"{GOOD}// -----\n{BAD}// -----\n{GOOD}// -----\n{BAD}")
    found = run(source, "-split-input-file")
    assert found.status == 1
    assert [line for line in found.errors.splitlines() if "error" in line] == [
        f"{source}:7:23: error: use of undeclared SSA value name",
        f"{source}:16:23: error: use of undeclared SSA value name",
    ]


EXPECTED = GROUPED.replace(
    "  sdy.sharding_group %b", f"  // expected-error@+1 {{{{{GROUP_ERROR}}}}}\n  sdy.sharding_group %b"
)


def test_expected_diagnostics_are_a_success(put: Put) -> None:
    assert run(put(EXPECTED), "-sdy-sharding-group-import", "-verify-diagnostics") == Outcome(0, "", "")


def test_errors_of_the_parser_can_be_expected(put: Put) -> None:
    text = BAD.replace("  %0", "  // expected-error@below {{use of undeclared SSA value name}}\n  %0")
    assert run(put(text), "-verify-diagnostics") == Outcome(0, "", "")


def test_warnings_can_be_expected(put: Put) -> None:
    text = GOOD.replace("stablehlo.sine %a :", "stablehlo.custom_call @odd(%a) : (tensor<8xf32>) ->")
    source = put(f"// expected-warning-re@+2 {{{{for custom call @{{{{[a-z]+}}}} (1 in}}}}\n{text}")
    assert run(source, "-sdy-basic-propagate", "-verify-diagnostics") == Outcome(0, "", "")
    assert run(source, "-verify-diagnostics").status == 1


def test_diagnostics_that_are_not_expected_are_a_failure(put: Put) -> None:
    source = put(GROUPED)
    assert run(source, "-sdy-sharding-group-import", "-verify-diagnostics") == Outcome(
        1, "", f"{source}:4: error: unexpected error: {GROUP_ERROR}\n"
    )


def test_expected_diagnostics_that_do_not_come_are_a_failure(put: Put) -> None:
    source = put(f"// expected-error {{{{bad}}}}\n{GOOD}")
    assert run(source, "-verify-diagnostics") == Outcome(
        1, "", f'{source}:1: error: expected error "bad" was not produced\n'
    )


def test_every_part_has_its_own_expectations(put: Put) -> None:
    flags = "-sdy-sharding-group-import", "-verify-diagnostics", "-split-input-file"
    assert run(put(f"{EXPECTED}// -----\n{GOOD}// -----\n{EXPECTED}"), *flags) == Outcome(0, "", "")
    source = put(f"{EXPECTED}// -----\n{GROUPED}")
    assert run(source, *flags) == Outcome(1, "", f"{source}:12: error: unexpected error: {GROUP_ERROR}\n")


def test_diagnostics_of_bytecode_are_not_expected(put: Put) -> None:
    assert run(put(Module.parse(GOOD).bytecode()), "-verify-diagnostics") == Outcome(0, "", "")
    found = run(put(Module.parse(GROUPED).bytecode()), "-sdy-sharding-group-import", "-verify-diagnostics")
    assert found.status == 1
    assert f"unexpected error: {GROUP_ERROR}" in found.errors


@pytest.mark.parametrize("argv", [["--help"], ["-help"], ["-h"], ["-symbol-dce", "--help", "-zzz"]])
def test_help(argv: list[str]) -> None:
    assert run(*argv) == Outcome(0, help_text(), "")


def test_help_names_every_flag_pass_and_pipeline() -> None:
    lines = help_text().splitlines()
    assert lines[0].startswith("usage: pyshardy-opt ")
    words = {line.split()[0] for line in lines if line.startswith("  -")}
    flags = {
        "-split-input-file", "-verify-diagnostics", "-allow-unregistered-dialect", "-mlir-print-op-generic",
        "-mlir-print-debuginfo", "-emit-bytecode", "-pass-pipeline=TEXT",
    }  # fmt: skip
    assert words == flags | {f"-{name}" for name in [*PASSES, *PIPELINES]}


def test_as_a_program(put: Put) -> None:
    source = put(WITH_UNUSED)
    command = [sys.executable, "-m", "pyshardy.opt"]
    done = subprocess.run([*command, "-", "-symbol-dce"], input=WITH_UNUSED, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, PRINTED, "")
    done = subprocess.run([*command, source, "-zzz"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: reading the command line: got unknown flag '-zzz'")


def test_the_command_line_of_the_process(
    put: Put, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr(sys, "argv", ["pyshardy-opt", put(GOOD)])
    assert main() == 0
    assert capfdbinary.readouterr().out == PRINTED.encode()
    assert main(["-zzz"]) == 2
    assert b"unknown flag '-zzz'" in capfdbinary.readouterr().err
