"""Dumps, times, and the search for the pass that broke a module."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from pyshardy.cli.instruments import Timer, mlir_class
from pyshardy.cli.opt import run_opt
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op
from pyshardy.passes.common.symbol_dce import SymbolDce
from pyshardy.passes.table import PASSES, pass_class
from pyshardy.transforms.context import PassContext

# What is invalid is written op by op, so that it can be printed and verified.
pytestmark = pytest.mark.filterwarnings("ignore:a module is written op by op. Unable to parse module")

GOOD = """func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.sine %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @unused() {
  return
}
"""
MAIN = """  func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.sine %arg0 : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
"""
UNUSED = "  func.func private @unused() {\n    return\n  }\n"
BEFORE = f"module {{\n{MAIN}{UNUSED}}}\n"
AFTER = f"module {{\n{MAIN}}}\n"
MAIN_ALONE = "".join(line[2:] for line in MAIN.splitlines(keepends=True))
UNUSED_ALONE = "".join(line[2:] for line in UNUSED.splitlines(keepends=True))
POPULATE, DROP = "sdy-populate-op-sharding-rules", "sdy-drop-sharding-rules"


def run(*argv: str, text: str = GOOD) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command line on a module."""
    stdout, stderr = io.BytesIO(), io.StringIO()
    status = run_opt(argv, stdout, stderr, io.BytesIO(text.encode()))
    return status, stdout.getvalue().decode(), stderr.getvalue()


def headings(*argv: str, text: str = GOOD) -> list[str]:
    """What is dumped, in order."""
    status, _, errors = run(*argv, text=text)
    assert status == 0
    return re.findall(r"^// -----// IR Dump (.*) //----- //$", errors, re.M)


# Dumps


def test_a_module_is_dumped_before_and_after_a_pass() -> None:
    before = f"// -----// IR Dump Before SymbolDCEPass: symbol-dce //----- //\n{BEFORE}\n\n"
    after = f"// -----// IR Dump After SymbolDCEPass: symbol-dce //----- //\n{AFTER}\n\n"
    assert run("-symbol-dce", "-mlir-print-ir-before-all") == (0, AFTER, before)
    assert run("-symbol-dce", "--mlir-print-ir-after-all") == (0, AFTER, after)
    assert run("-symbol-dce", "-mlir-print-ir-after-all=true", "-mlir-print-ir-before=symbol-dce") == (
        0, AFTER, before + after
    )  # fmt: skip
    assert run("-symbol-dce", "-mlir-print-ir-after-all=false") == (0, AFTER, "")


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["-mlir-print-ir-before-all"], ["Before 1", "Before 2", "Before 1"]),
        (["-mlir-print-ir-after-all"], ["After 1", "After 2", "After 1"]),
        (
            ["-mlir-print-ir-before-all", "-mlir-print-ir-after-all"],
            ["Before 1", "After 1", "Before 2", "After 2", "Before 1", "After 1"],
        ),
        (["-mlir-print-ir-before=symbol-dce"], ["Before 1", "Before 1"]),
        (["-mlir-print-ir-after=sdy-inline-meshes"], ["After 2"]),
        (["-mlir-print-ir-after=sdy-inline-meshes,symbol-dce"], ["After 1", "After 2", "After 1"]),
        (["-mlir-print-ir-after", "canonicalize"], []),
        (["-mlir-print-ir-after-all", "-mlir-print-ir-after-change"], ["After 1"]),
        (["-mlir-print-ir-after-change"], []),
    ],
)
def test_which_dumps(flags: list[str], expected: list[str]) -> None:
    names = {"1": "SymbolDCEPass: symbol-dce", "2": "InlineMeshesPass: sdy-inline-meshes"}
    found = headings("-symbol-dce", "-sdy-inline-meshes", "-symbol-dce", *flags)
    assert found == [f"{when} {names[number]}" for when, number in map(str.split, expected)]


def test_a_pass_on_functions_is_followed_by_every_function() -> None:
    heading = "// -----// IR Dump After DropShardingRulesPass: sdy-drop-sharding-rules"
    expected = f"{heading} //----- //\n{MAIN_ALONE}\n{heading} //----- //\n{UNUSED_ALONE}\n"
    assert run(f"-{DROP}", "-mlir-print-ir-after-all") == (0, BEFORE, expected)
    main, unused = (f"{heading} ('func.func' operation: @{name}) //----- //\n" for name in ("main", "unused"))
    expected = f"{main}{BEFORE}\n\n{unused}{BEFORE}\n\n"
    assert run(f"-{DROP}", "-mlir-print-ir-after-all", "-mlir-print-ir-module-scope") == (0, BEFORE, expected)


def test_what_a_pass_on_functions_did_not_change_is_left_out() -> None:
    flags = "-mlir-print-ir-after-all", "-mlir-print-ir-after-change", "-mlir-print-ir-module-scope"
    found = headings(f"-{DROP}", f"-{POPULATE}", f"-{POPULATE}", f"-{DROP}", *flags)
    assert [re.sub(r":.*@|\)", " ", heading) for heading in found] == [
        "After PopulateOpShardingRulesPass main ", "After DropShardingRulesPass main ",
    ]  # fmt: skip


def test_passes_on_functions_have_one_function_after_the_other() -> None:
    found = headings(f"-{POPULATE}", f"-{DROP}", "-symbol-dce", "-mlir-print-ir-before-all", "-mlir-print-ir-after-all")
    of_one = [f"{when} {name}" for name in (f"PopulateOpShardingRulesPass: {POPULATE}", f"DropShardingRulesPass: {DROP}")
              for when in ("Before", "After")]  # fmt: skip
    assert found == [*of_one, *of_one, "Before SymbolDCEPass: symbol-dce", "After SymbolDCEPass: symbol-dce"]


UNREDUCED = """sdy.mesh @m = <["a"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{}], unreduced={"a"}>}) -> tensor<8xf32> {
  %0 = stablehlo.abs %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func @good() {
  return
}
func.func @bad(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{}], unreduced={"a"}>}) -> tensor<8xf32> {
  %0 = stablehlo.sine %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
"""A module of which the first and the last function are refused."""


@pytest.mark.parametrize("flag", ["-mlir-print-ir-after-failure", "-mlir-print-ir-after-all"])
def test_the_pass_that_fails_is_dumped_as_failed(flag: str) -> None:
    status, out, errors = run(f"-{POPULATE}", "-sdy-verify-unreduced-axes", flag, text=UNREDUCED)
    assert (status, out) == (1, "")
    found = re.findall(r"IR Dump After (\w+ ?\w*): .* //\n.*?@(\w+)", errors)
    failed = "VerifyUnreducedAxesPass Failed"
    if flag.endswith("failure"):
        assert found == [(failed, "main"), (failed, "bad")]
    else:
        rules, good = "PopulateOpShardingRulesPass", "VerifyUnreducedAxesPass"
        assert found == [
            (rules, "main"), (failed, "main"), (rules, "good"), (good, "good"), (rules, "bad"), (failed, "bad")
        ]  # fmt: skip
    assert "stablehlo.sine %arg0 {sdy.sharding_rule" in errors


def test_the_errors_of_all_functions_are_reported() -> None:
    errors = run("-sdy-verify-unreduced-axes", text=UNREDUCED)[2]
    assert re.findall(r"^-:(\d+):\d+: error: \'(\S+)\'", errors, re.M) == [
        ("3", "stablehlo.abs"),
        ("10", "stablehlo.sine"),
    ]


def test_no_failure_is_no_dump() -> None:
    assert run("-symbol-dce", f"-{DROP}", "-mlir-print-ir-after-failure") == (0, AFTER, "")


@pytest.mark.usefixtures("half_done")
def test_a_module_that_cannot_be_written_is_dumped_as_such() -> None:
    status, out, errors = run("-symbol-dce", "-mlir-print-ir-after-failure")
    assert (status, out) == (1, "")
    heading = "// -----// IR Dump After SymbolDCEPass Failed: symbol-dce //----- //\n// cannot be written: "
    assert errors.startswith(heading)
    assert errors.endswith("error: 'builtin.module' op gives up\n")


def test_dumps_name_the_options() -> None:
    found = headings("-sdy-basic-propagate=keep-sharding-rules=true", "-mlir-print-ir-after-all")
    assert found == ["After BasicPropagationPass: sdy-basic-propagate{keep-sharding-rules=true}"]


def test_dumps_look_as_the_output_does() -> None:
    _, out, errors = run("-symbol-dce", "-mlir-print-ir-after-all", "-mlir-print-op-generic", "-mlir-print-debuginfo")
    assert errors == f"// -----// IR Dump After SymbolDCEPass: symbol-dce //----- //\n{out}\n\n"
    assert '"stablehlo.sine"' in out
    assert "loc(" in out


def test_every_module_of_a_file_is_dumped() -> None:
    found = headings("-symbol-dce", "-mlir-print-ir-after-all", "-split-input-file", text=f"{GOOD}// -----\n{GOOD}")
    assert found == ["After SymbolDCEPass: symbol-dce"] * 2


def test_dumps_do_not_change_what_the_passes_do() -> None:
    flags = "-mlir-print-ir-after-all", "-mlir-print-ir-before-all", "-mlir-print-ir-after-change", "-verify-each"
    path = str(Path(__file__).parents[3] / "examples" / "mlp.mlir")
    plain = run(path, "-sdy-propagation-pipeline")
    status, out, errors = run(path, "-sdy-propagation-pipeline", *flags)
    assert (status, out) == (0, plain[1])
    assert "IR Dump After CloseShardingsPass" in errors


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("symbol-dce", "SymbolDCEPass"),
        ("canonicalize", "CanonicalizerPass"),
        ("sdy-user-priority-propagate", "UserPriorityPropagationPass"),
        ("sdy-close-shardings", "CloseShardingsPass"),
    ],
)
def test_the_name_in_mlir(name: str, expected: str) -> None:
    assert mlir_class(pass_class(name)()) == expected


def test_no_two_passes_have_one_name_in_mlir() -> None:
    assert len({mlir_class(pass_class(name)()) for name in PASSES}) == len(PASSES)


# Pipelines


def test_the_passes_are_printed_as_a_pipeline() -> None:
    flags = "-symbol-dce", "-sdy-basic-propagate=keep-sharding-rules", f"-{DROP}"
    text = f"builtin.module(symbol-dce,sdy-basic-propagate{{keep-sharding-rules=true}},{DROP})"
    assert run(*flags, "-dump-pass-pipeline") == (0, AFTER, f"Pass Manager with 3 passes:\n{text}\n")
    assert run("-pass-pipeline", text, "-dump-pass-pipeline")[2] == f"Pass Manager with 3 passes:\n{text}\n"
    assert run("-dump-pass-pipeline") == (0, BEFORE, "Pass Manager with 0 passes:\nbuiltin.module()\n")


# Times


def steps(errors: str) -> list[str]:
    """The steps of a table of times, after checking what stands beside them."""
    title, heading, _, *rows = errors.splitlines()
    assert title.strip() == "wall time"
    assert [cell.strip() for cell in heading.split("┃")] == ["step", "time", "share"]
    cells = [[cell.strip() for cell in row.split("│")] for row in rows]
    assert all(re.fullmatch(r"\d+\.\d (ms|s)|\d+\.\d\d s", time) for _, time, _ in cells)
    assert sum(float(share.rstrip("%")) for _, _, share in cells[:-1]) == pytest.approx(100, abs=1)
    assert cells[-1][2] == "100.0%"
    return [name for name, _, _ in cells]


def test_times_of_passes_in_their_order() -> None:
    status, out, errors = run("-symbol-dce", f"-{DROP}", "-symbol-dce", "-mlir-timing")
    assert (status, out) == (0, AFTER)
    passes = ["symbol-dce", DROP, "symbol-dce"]
    assert steps(errors) == ["parse", "read", *passes, "write and verify", "print", "rest", "total"]


def test_times_of_several_modules_are_added_up() -> None:
    _, _, errors = run("-symbol-dce", "-mlir-timing", "-split-input-file", text=f"{GOOD}// -----\n{GOOD}")
    assert steps(errors) == ["parse", "read", "symbol-dce", "write and verify", "print", "rest", "total"]


def test_times_of_a_failure() -> None:
    status, out, errors = run("-mlir-timing", text="oops")
    assert (status, out) == (1, "")
    message, table = errors.split("^\n")
    assert message.startswith("-:1:1: error: custom op 'oops' is unknown")
    assert steps(table) == ["parse", "rest", "total"]


def test_a_senseless_command_line_has_no_times() -> None:
    _, _, errors = run("-mlir-timing", "-zzz")
    assert errors.startswith("error: reading the command line: got unknown flag '-zzz'")
    assert "wall time" not in errors


def test_steps_of_one_key_are_added_up() -> None:
    timer = Timer()
    timer.add(0, "a", 1.0)
    timer.add(1, "a", 2.0)
    timer.add(0, "a", 4.0)
    assert list(timer.steps.values()) == [("a", 5.0), ("a", 2.0)]


# Verifying


@pytest.fixture
def half_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has `symbol-dce` leave a sharding that is none, and fail."""

    def run(self: SymbolDce, op: Op, context: PassContext) -> None:
        next(iter(op.region.block)).set_attr("sdy.sharding", ("no sharding",))
        raise PassError(op, "gives up")

    monkeypatch.setattr(SymbolDce, "run", run)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has `symbol-dce` take away the terminator of the main function."""

    def run(self: SymbolDce, op: Op, context: PassContext) -> None:
        main = next(iter(op.region.block))
        main.region.block.terminator.erase()

    monkeypatch.setattr(SymbolDce, "run", run)


INVALID = """-:2:8: error: block with no terminator, has %0 = "stablehlo.sine"(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  %0 = stablehlo.sine %a : tensor<8xf32>
       ^
"""
BROKEN_BY = "-: note: the module is invalid after the pass symbol-dce\n"


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("flags", [[], ["-verify-each"], ["--verify-each=1"], ["-verify-each=true"]])
def test_a_pass_that_breaks_the_module_is_named(flags: list[str], tmp_path: Path) -> None:
    target = tmp_path / "out.mlir"
    passes = f"-{DROP}", "-symbol-dce", f"-{DROP}"
    assert run(*passes, *flags, "-o", str(target)) == (1, "", INVALID + BROKEN_BY)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("flag", ["-verify-each=0", "--verify-each=false"])
def test_without_verifying_a_broken_module_is_printed(flag: str) -> None:
    status, out, errors = run("-symbol-dce", flag)
    assert (status, errors) == (0, "")
    assert '"stablehlo.sine"' in out
    assert out.count("return") == 1


@pytest.mark.usefixtures("broken")
def test_the_verifier_of_a_broken_module_may_be_expected() -> None:
    text = f"// expected-error@+2 {{{{block with no terminator}}}}\n{GOOD}"
    assert run("-symbol-dce", "-verify-diagnostics", text=text) == (0, "", "")
    assert run("-symbol-dce", "-verify-diagnostics", "-verify-each", text=text) == (0, "", "")


@pytest.mark.usefixtures("broken")
def test_a_broken_module_is_dumped_as_failed() -> None:
    status, out, errors = run("-symbol-dce", f"-{DROP}", "-verify-each", "-mlir-print-ir-after-all")
    assert (status, out) == (1, "")
    heading = "// -----// IR Dump After SymbolDCEPass Failed: symbol-dce //----- //\n"
    assert errors.startswith(f'{heading}"builtin.module"() ({{\n')
    assert errors.endswith(INVALID + BROKEN_BY)
    assert errors.count("IR Dump") == 1


def test_verifying_each_pass_lets_valid_modules_through() -> None:
    assert run("-symbol-dce", f"-{DROP}", "-verify-each") == (0, AFTER, "")
