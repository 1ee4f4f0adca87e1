from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from pyshardy.cli import opt
from pyshardy.cli.opt import main, run_opt
from pyshardy.ir.module import Module

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


def test_standard_input_may_be_given() -> None:
    for _ in range(2):
        stdout, stderr = io.BytesIO(), io.StringIO()
        assert run_opt(["-symbol-dce"], stdout, stderr, io.BytesIO(WITH_UNUSED.encode())) == 0
        assert (stdout.getvalue().decode(), stderr.getvalue()) == (PRINTED, "")


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


def test_a_pass_that_cannot_run_with_its_options_is_a_wrong_command_line(put: Put) -> None:
    found = run(put(GOOD), "-canonicalize")
    assert (found.status, found.out) == (2, "")
    assert found.errors.startswith("error: running canonicalize: got no label in enable-patterns")


def test_the_caret_stands_below_the_place_whatever_is_before_it(put: Put) -> None:
    line = '\t"t.op"() {name = "Ω日"} : () -> () "t.op"(%x) : (i32) -> ()'
    source = put(f"func.func @main() {{\r\n{line}\r\n  return\r\n}}\r\n")
    message, shown, caret, _ = run(source, "-allow-unregistered-dialect").errors.split("\n")
    assert message == f"{source}:2:46: error: use of undeclared SSA value name"
    assert shown == line
    assert caret == "\t" + " " * (line.index("%") - 1) + "^"


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


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([BAD], ""),
        ([GOOD, BAD], f"{PRINTED}\n// -----\n"),
        ([BAD, GOOD], f"// -----\n{PRINTED}"),
        ([GOOD, BAD, GOOD], f"{PRINTED}\n// -----\n// -----\n{PRINTED}"),
    ],
)
def test_good_parts_are_printed_even_if_others_fail(put: Put, parts: list[str], expected: str) -> None:
    found = run(put("// -----\n".join(parts)), "-split-input-file")
    assert (found.status, found.out) == (1, expected)
    assert found.errors.count("error: use of undeclared SSA value name") == 1


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


def test_locations_for_people(put: Put) -> None:
    out = run(put(GOOD), "-mlir-pretty-debuginfo").out
    assert "    return %0 : tensor<8xf32> -:3:3\n" in out
    assert "loc(" not in out


def test_names_of_values_after_locations(put: Put) -> None:
    text = GOOD.replace("tensor<8xf32>\n  return", 'tensor<8xf32> loc("sin")\n  return')
    assert "%sin = stablehlo.sine" in run(put(text), "-mlir-use-nameloc-as-prefix").out
    assert "%sin" not in run(put(text)).out


def test_local_scope(put: Put) -> None:
    source = put(GOOD)
    assert "#loc" in run(source, "-mlir-print-debuginfo").out
    out = run(source, "-mlir-print-debuginfo", "-mlir-print-local-scope").out
    assert "#loc" not in out
    assert 'loc("-":2:8)' in out


def test_large_constants_are_shortened(put: Put) -> None:
    source = put("func.func @f() -> tensor<4xi32> {\n  %0 = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>\n"
                 "  return %0 : tensor<4xi32>\n}")  # fmt: skip
    flag = "--mlir-elide-elementsattrs-if-larger"
    assert "dense_resource<__elided__>" in run(source, f"{flag}=3").out
    assert "dense_resource<__elided__>" in run(source, flag, "3").out
    assert "dense<[1, 2, 3, 4]>" in run(source, f"{flag}=4").out


def test_large_resources_are_shortened(put: Put) -> None:
    text = """func.func @f() -> tensor<2xi32> {
  %0 = stablehlo.constant dense_resource<blob> : tensor<2xi32>
  return %0 : tensor<2xi32>
}
{-# dialect_resources: { builtin: { blob: "0x040000000100000002000000" } } #-}
"""
    source, flag = put(text), "-mlir-elide-resource-strings-if-larger"
    assert "0x04000000" in run(source, f"{flag}=100").out
    assert "0x04000000" not in run(source, f"{flag}=3").out


IGNORED = [
    "-no-implicit-module", "--mlir-print-op-on-diagnostic=false", "-mlir-disable-threading",
    "-mlir-print-stacktrace-on-diagnostic", "-mlir-timing-display=list",
]  # fmt: skip


@pytest.mark.parametrize("flag", IGNORED)
def test_flags_that_change_nothing(put: Put, flag: str) -> None:
    source = put(PRINTED)
    assert run(source, flag) == run(source) == Outcome(0, PRINTED, "")


def test_ops_of_unknown_dialects(put: Put) -> None:
    source = put(UNKNOWN)
    found = run(source)
    assert (found.status, found.out) == (1, "")
    assert found.errors.startswith(f"{source}:1:7: error: operation being parsed with an unregistered dialect.")
    assert "use -allow-unregistered-dialect" in found.errors
    assert run(source, "--allow-unregistered-dialect") == Outcome(0, 'module {\n  "t.op"() : () -> ()\n}\n', "")


FILE = f"{GOOD}// -----\nfunc.func @f() {{\n  return\n}}\n"


def test_a_file_is_split_into_modules(put: Put) -> None:
    assert run(put(FILE), "-split-input-file") == Outcome(0, f"{PRINTED}\n// -----\n{EMPTY_PRINTED}", "")


def test_the_parts_of_what_is_printed_are_read_again(put: Put) -> None:
    once = run(put(FILE), "-split-input-file").out
    assert run(put(once), "-split-input-file").out == once


def test_passes_run_on_every_part(put: Put) -> None:
    found = run(put(f"{WITH_UNUSED}// -----\n{WITH_UNUSED}"), "-split-input-file", "-symbol-dce")
    assert found.out == f"{PRINTED}\n// -----\n{PRINTED}"


@pytest.mark.parametrize("separator", ["// -----", "// ------", "// ----- what follows"])
def test_separators(put: Put, separator: str) -> None:
    assert run(put(FILE.replace("// -----", separator)), "-split-input-file").out.count("module {") == 2


@pytest.mark.parametrize("separator", ["//-----", " // -----", "// ----", "// - ----"])
def test_what_does_not_separate(put: Put, separator: str) -> None:
    assert run(put(FILE.replace("// -----", separator)), "-split-input-file").out.count("module {") == 1


@pytest.mark.parametrize("flag", ["-split-input-file=// ####", "--split-input-file=#"])
def test_other_separators(put: Put, flag: str) -> None:
    separator = flag.partition("=")[2]
    assert run(put(FILE.replace("// -----", separator)), flag).out == f"{PRINTED}\n// -----\n{EMPTY_PRINTED}"
    assert run(put(FILE), flag).out.count("module {") == 1


@pytest.mark.parametrize(
    ("flags", "between"),
    [
        (["--output-split-marker=// ----"], "\n// ----\n"),
        (["-output-split-marker", "#"], "\n#\n"),
        (["-output-split-marker="], "\n\n"),
    ],
)
def test_what_separates_the_output(put: Put, flags: list[str], between: str) -> None:
    assert run(put(FILE), "-split-input-file", *flags).out == f"{PRINTED}{between}{EMPTY_PRINTED}"
    assert run(put(GOOD), "-split-input-file", *flags).out == PRINTED


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
    "  sdy.sharding_group %b",
    f"  // expected-note@above {{{{first member}}}}\n  // expected-error@+1 {{{{{GROUP_ERROR}}}}}\n  sdy.sharding_group %b",
)


def unexpected(source: str, lines: int = 0) -> str:
    """What is said of `GROUPED`, behind so many lines."""
    return (
        f"{source}:{4 + lines}:3: error: unexpected error: {GROUP_ERROR}\n"
        "  sdy.sharding_group %b group_id=1 : tensor<4xf32>\n  ^\n"
        f"{source}:{3 + lines}:3: error: unexpected note: first member of the group\n"
        "  sdy.sharding_group %a group_id=1 : tensor<8xf32>\n  ^\n"
    )


@pytest.mark.parametrize("level", ["", "=true", "=all", "=only-expected"])
def test_expected_diagnostics_are_a_success(put: Put, level: str) -> None:
    assert run(put(EXPECTED), "-sdy-sharding-group-import", f"-verify-diagnostics{level}") == Outcome(0, "", "")


def test_what_is_not_expected_may_come_if_only_the_expected_counts(put: Put) -> None:
    flags = "-sdy-sharding-group-import", "-verify-diagnostics=only-expected"
    without_note = put(EXPECTED.replace("expected-note", "note"))
    assert run(without_note, *flags) == Outcome(0, "", "")
    assert run(without_note, *flags[:1], "-verify-diagnostics").status == 1
    found = run(put(GOOD + "// expected-error {{bad}}"), *flags)
    assert (found.status, found.out) == (1, PRINTED)
    assert 'expected error "bad" was not produced' in found.errors


def test_modules_without_errors_are_printed_while_diagnostics_are_compared(put: Put) -> None:
    flags = "-sdy-sharding-group-import", "-verify-diagnostics", "-split-input-file"
    assert run(put(GOOD), *flags) == Outcome(0, PRINTED, "")
    assert run(put(f"{GOOD}// -----\n{EXPECTED}// -----\n{GOOD}"), *flags) == Outcome(
        0, f"{PRINTED}\n// -----\n// -----\n{PRINTED}", ""
    )


@pytest.mark.parametrize("flag", ["-verify-diagnostics", "-verify-diagnostics=only-expected"])
def test_an_expectation_that_is_no_regular_expression_is_refused(put: Put, flag: str) -> None:
    source = put(f"// expected-error-re {{{{a {{{{[}}}} b}}}}\n{GOOD}")
    found = run(source, flag)
    assert (found.status, found.out) == (1, PRINTED)
    assert re.fullmatch(
        rf"{re.escape(source)}:1:4: error: invalid regex: .*\n// expected-error-re .*\n   \^\n", found.errors
    )


def test_errors_of_the_parser_can_be_expected(put: Put) -> None:
    text = BAD.replace("  %0", "  // expected-error@below {{use of undeclared SSA value name}}\n  %0")
    assert run(put(text), "-verify-diagnostics") == Outcome(0, "", "")


def test_warnings_can_be_expected(put: Put) -> None:
    text = GOOD.replace("stablehlo.sine %a :", "stablehlo.custom_call @odd(%a) : (tensor<8xf32>) ->")
    source = put(f"// expected-warning-re@+2 {{{{for custom call @{{{{[a-z]+}}}} (1 in}}}}\n{text}")
    found = run(source, "-sdy-basic-propagate", "-verify-diagnostics")
    assert (found.status, found.errors) == (0, "")
    assert "@odd" in found.out
    found = run(source, "-verify-diagnostics")
    assert found.status == 1
    assert "was not produced" in found.errors


def test_diagnostics_that_are_not_expected_are_a_failure(put: Put) -> None:
    source = put(GROUPED)
    assert run(source, "-sdy-sharding-group-import", "-verify-diagnostics") == Outcome(1, "", unexpected(source))


def test_expected_diagnostics_that_do_not_come_are_a_failure(put: Put) -> None:
    source = put(f"// expected-error {{{{bad}}}}\n{GOOD}")
    assert run(source, "-verify-diagnostics") == Outcome(
        1, PRINTED, f'{source}:1:4: error: expected error "bad" was not produced\n// expected-error {{{{bad}}}}\n   ^\n'
    )


def test_every_part_has_its_own_expectations(put: Put) -> None:
    flags = "-sdy-sharding-group-import", "-verify-diagnostics", "-split-input-file"
    assert run(put(f"{EXPECTED}// -----\n{GOOD}// -----\n{EXPECTED}"), *flags) == Outcome(
        0, f"// -----\n{PRINTED}\n// -----\n", ""
    )
    source = put(f"{EXPECTED}// -----\n{GROUPED}")
    assert run(source, *flags) == Outcome(1, "// -----\n", unexpected(source, 9))


def test_diagnostics_of_bytecode_are_not_expected(put: Put) -> None:
    assert run(put(Module.parse(GOOD).bytecode()), "-verify-diagnostics") == Outcome(0, PRINTED, "")
    found = run(put(Module.parse(GROUPED).bytecode()), "-sdy-sharding-group-import", "-verify-diagnostics")
    assert found.status == 1
    assert f"unexpected error: {GROUP_ERROR}" in found.errors


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


def test_interrupting_is_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(*args: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(opt, "run_opt", interrupt)
    assert main(["-"]) == 130
    assert capsys.readouterr() == ("", "interrupted\n")


def test_passes_run_without_jax_and_without_tables(put: Put) -> None:
    code = (
        "import io, sys; from pyshardy.cli.opt import run_opt; "
        f"status = run_opt([{put(SHARDED)!r}, '-sdy-propagation-pipeline'], io.BytesIO(), sys.stderr); "
        "print(status, sorted({'jax', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 []\n", "")


NOT_NEEDED = (
    "difflib", "fractions", "importlib.metadata", "jax", "json", "rich", "tempfile",
    "jaxlib.mlir.dialects.builtin", "jaxlib.mlir.dialects.mhlo", "jaxlib.mlir.dialects.stablehlo",
    "pyshardy.cli.expectations", "pyshardy.cli.progress", "pyshardy.passes.exporting.inline_meshes",
    "pyshardy.passes.partitioning.convert_global_to_local", "pyshardy.report.summary", "pyshardy.reshard.collectives", "pyshardy.rules.einsum",
)  # fmt: skip
"""What costs time to import and is not needed to propagate; jaxlib itself imports numpy, re and inspect."""


LISTING_MODULES = """import os, sys
end = os._exit
os._exit = lambda status: (print(*sys.modules, file=sys.stderr, flush=True), end(status))
from pyshardy.opt import main
main()
"""


def imported_modules(*arguments: str) -> set[str]:
    """What a process of `pyshardy-opt` has imported at its end."""
    done = subprocess.run([sys.executable, "-c", LISTING_MODULES, *arguments], capture_output=True, text=True)
    assert (done.returncode, done.stdout != "") == (0, True)
    return set(done.stderr.split())


def test_a_process_imports_no_more_than_it_needs(put: Put) -> None:
    found = imported_modules(put(SHARDED), "-sdy-propagation-pipeline")
    assert {"jaxlib.mlir.ir", "pyshardy.passes.exporting.close_shardings"} <= found
    assert found.isdisjoint(NOT_NEEDED), sorted(found & set(NOT_NEEDED))


def test_what_a_process_imports_without_need_is_noticed(put: Put) -> None:
    found = imported_modules(put(SHARDED), "-sdy-inline-meshes", "-verify-diagnostics")
    assert {"pyshardy.passes.exporting.inline_meshes", "pyshardy.cli.expectations"} <= found & set(NOT_NEEDED)


def test_a_process_of_its_own_does_what_a_call_does(put: Put, tmp_path: Path) -> None:
    source, output = put(f"{SHARDED}// -----\n{GROUPED}"), tmp_path / "out.mlir"
    for flags in (
        ["-sdy-propagation-pipeline", "-mlir-print-ir-after-all", "-split-input-file"],
        ["-sdy-sharding-group-import", "-split-input-file"],
        ["-sdy-drop-sharding-rules", "-mlir-print-ir-before-all", "-split-input-file"],
        ["-split-input-file", "-o", str(output)],
    ):
        done = subprocess.run([sys.executable, "-m", "pyshardy.opt", source, *flags], capture_output=True, text=True)
        assert Outcome(done.returncode, done.stdout, done.stderr) == run(source, *flags)
    assert output.read_text().count("module") == 2


def test_all_that_a_process_prints_arrives(put: Put) -> None:
    functions = "".join(f"func.func @f{number}() {{ return }}\n" for number in range(5000))
    done = subprocess.run([sys.executable, "-m", "pyshardy.opt", put(functions)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, Module.parse(functions).text())


def test_one_run_leaves_nothing_to_the_next(put: Put) -> None:
    source = put(WITH_UNUSED)
    plain = run(source)
    flags = "-symbol-dce", "-mlir-print-op-generic", "-allow-unregistered-dialect", "-mlir-print-ir-after-all"
    assert run(source, *flags, "-verify-each", "-split-input-file=#") != plain
    assert run(source) == plain
