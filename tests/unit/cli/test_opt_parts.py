"""Files of several modules, and the diagnostics that each is expected to give."""

from __future__ import annotations

import re

import pytest

from pyshardy.ir.module import Module

from .opt_command_line import BAD, EMPTY_PRINTED, GOOD, GROUP_ERROR, GROUPED, PRINTED, WITH_UNUSED, Outcome, Put, run

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
