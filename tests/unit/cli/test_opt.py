"""Command lines of `pyshardy-opt` in this process."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pyshardy.cli.opt import run_opt
from pyshardy.ir.module import Module

from .opt_command_line import (
    BAD,
    GOOD,
    GROUP_ERROR,
    GROUPED,
    PRINTED,
    RULE,
    SHARDED,
    UNKNOWN,
    WITH_UNUSED,
    Outcome,
    Put,
    run,
)

Given = Callable[[str], None]


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


def test_options_that_do_not_go_together_are_a_wrong_command_line(put: Put) -> None:
    found = run(put(GOOD), "-sdy-export-pipeline=enable-per-instruction-partitioning=true")
    assert (found.status, found.out) == (2, "")
    assert found.errors.startswith("error: reading the options of sdy-export-pipeline: got enable-per-instruction-part")


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
        f"(.mlir) or as MLIR bytecode, HLO as text or .pb, or an Exported of jax.export\n  at {source}, byte 1\n"
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


def test_one_run_leaves_nothing_to_the_next(put: Put) -> None:
    source = put(WITH_UNUSED)
    plain = run(source)
    flags = "-symbol-dce", "-mlir-print-op-generic", "-allow-unregistered-dialect", "-mlir-print-ir-after-all"
    assert run(source, *flags, "-verify-each", "-split-input-file=#") != plain
    assert run(source) == plain
