"""What command lines of `pyshardy-opt` mean, and which are refused."""

from __future__ import annotations

import io

import pytest

from pyshardy.cli.opt import run_opt
from pyshardy.cli.opt_command import help_text, parse_command, passes_text
from pyshardy.errors import UsageError
from pyshardy.passes.options import format_options
from pyshardy.passes.pipelines import PIPELINES
from pyshardy.passes.table import PASSES, pass_class


def run(*argv: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command line."""
    stdout, stderr = io.BytesIO(), io.StringIO()
    status = run_opt(argv, stdout, stderr, io.BytesIO(b""))
    return status, stdout.getvalue().decode(), stderr.getvalue()


def test_what_a_command_line_says() -> None:
    command = parse_command(
        ["-emit-bytecode", "--sdy-unflatten-call-graph=dedup-functions-fully=true", "a.mlir", "-o=b", "-symbol-dce"]
    )
    assert [pass_.name for pass_ in command.passes] == ["sdy-unflatten-call-graph", "symbol-dce"]
    assert command.flags == {"emit-bytecode"}
    assert (command.source, command.output) == ("a.mlir", "b")


@pytest.mark.parametrize(
    ("flags", "is_set"),
    [
        (["-mlir-timing"], True),
        (["--mlir-timing=true"], True),
        (["-mlir-timing=TRUE"], True),
        (["-mlir-timing=True"], True),
        (["-mlir-timing=1"], True),
        (["-mlir-timing=false"], False),
        (["-mlir-timing=FALSE"], False),
        (["--mlir-timing=False"], False),
        (["-mlir-timing=0"], False),
        (["-mlir-timing", "-mlir-timing=false"], False),
        (["-mlir-timing=false", "-mlir-timing"], True),
    ],
)
def test_the_last_of_equal_flags_wins(flags: list[str], is_set: bool) -> None:
    assert ("mlir-timing" in parse_command(flags).flags) == is_set


@pytest.mark.parametrize(
    ("flags", "separator"),
    [
        ([], None),
        (["-split-input-file"], "// -----"),
        (["-split-input-file="], "// -----"),
        (["--split-input-file=true"], "// -----"),
        (["-split-input-file=// ----"], "// ----"),
        (["--split-input-file=yes"], "yes"),
        (["-split-input-file=false"], None),
        (["-split-input-file", "-split-input-file=false"], None),
        (["-split-input-file=false", "-split-input-file=#"], "#"),
    ],
)
def test_separators(flags: list[str], separator: str | None) -> None:
    assert parse_command(flags).separator == separator


@pytest.mark.parametrize(
    ("flags", "level"),
    [
        ([], None),
        (["-verify-diagnostics"], "all"),
        (["--verify-diagnostics=true"], "all"),
        (["-verify-diagnostics=all"], "all"),
        (["-verify-diagnostics=only-expected"], "only-expected"),
        (["-verify-diagnostics=false"], None),
        (["-verify-diagnostics", "-verify-diagnostics=0"], None),
    ],
)
def test_levels_of_comparing_diagnostics(flags: list[str], level: str | None) -> None:
    command = parse_command(flags)
    assert command.values.get("verify-diagnostics") == level
    assert command.is_verifying_diagnostics == (level is not None)


@pytest.mark.parametrize(
    ("flags", "value"),
    [
        ([], None),
        (["-verify-each"], "true"),
        (["--verify-each=1"], "true"),
        (["--verify-each=true"], "true"),
        (["-verify-each=0"], "false"),
        (["--verify-each=false"], "false"),
        (["-verify-each=0", "-verify-each"], "true"),
    ],
)
def test_when_to_verify(flags: list[str], value: str | None) -> None:
    assert parse_command(flags).values.get("verify-each") == value


@pytest.mark.parametrize("dash", ["-", "--"])
def test_values_stand_behind_the_equals_sign_or_in_the_next_argument(dash: str) -> None:
    flag = f"{dash}mlir-elide-elementsattrs-if-larger"
    for flags in ([f"{flag}=12"], [flag, "12"]):
        assert parse_command([*flags, "in.mlir"]).limit("mlir-elide-elementsattrs-if-larger") == 12
    flag = f"{dash}mlir-print-ir-after"
    for flags in ([f"{flag}=symbol-dce,canonicalize"], [flag, "symbol-dce,canonicalize"]):
        assert parse_command(flags).names("mlir-print-ir-after") == {"symbol-dce", "canonicalize"}


def test_what_no_flag_gives() -> None:
    command = parse_command([])
    assert (command.passes, command.flags, command.values) == ([], set(), {})
    assert (command.source, command.output, command.limit("mlir-elide-elementsattrs-if-larger")) == ("-", None, None)


@pytest.mark.parametrize("argv", [["--", "-in.mlir"], ["-emit-bytecode", "--", "-in.mlir"]])
def test_behind_two_dashes_stands_the_input(argv: list[str]) -> None:
    assert parse_command(argv).source == "-in.mlir"


@pytest.mark.parametrize("argv", [["--", "a", "b"], ["a", "--", "b"]])
def test_behind_two_dashes_stands_one_input(argv: list[str]) -> None:
    with pytest.raises(UsageError, match="got a second input 'b', needed one input"):
        parse_command(argv)


def test_options_of_passes_are_read_as_in_pipelines() -> None:
    flags = ["-canonicalize=enable-patterns={sdy-collective, sdy-reshard} top-down=false", "-sdy-basic-propagate="]
    flags += ["--sdy-basic-propagate=keep-sharding-rules"]
    first, second, third = parse_command(flags).passes
    assert format_options(first) == "enable-patterns=sdy-collective,sdy-reshard top-down=false"
    assert format_options(second) == ""
    assert format_options(third) == "keep-sharding-rules=true"


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
        (["-o="], "reading the flag -o: got an empty name, needed a file, or - for standard output"),
        (["-mlir-timing=yes"], "reading the flag -mlir-timing: got 'yes', needed true or false"),
        (
            ["-verify-diagnostics=none"],
            "reading the flag -verify-diagnostics: got 'none', needed all, only-expected, true or false",
        ),
        (["-verify-each=2"], "reading the flag -verify-each: got '2', needed true or false"),
        (
            ["-mlir-elide-elementsattrs-if-larger=-1"],
            "reading the flag -mlir-elide-elementsattrs-if-larger: got '-1', needed a whole number from 0",
        ),
        (
            ["--mlir-elide-resource-strings-if-larger", "x"],
            "reading the flag -mlir-elide-resource-strings-if-larger: got 'x', needed a whole number from 0",
        ),
        (
            ["--mlir-elide-elementsattrs-if-larger"],
            "reading the command line: got --mlir-elide-elementsattrs-if-larger without a value, needed "
            "--mlir-elide-elementsattrs-if-larger N",
        ),
        (
            ["-mlir-print-ir-after=symbol-dec"],
            "reading the flag -mlir-print-ir-after: got 'symbol-dec', needed the name of a pass\n"
            "  try: -mlir-print-ir-after=symbol-dce",
        ),
        (
            ["-mlir-print-ir-before=symbol-dce,"],
            "reading the flag -mlir-print-ir-before: got '', needed the name of a pass\n"
            "  try: --show-passes for the list of passes",
        ),
        (
            ["-mlir-print-ir-after"],
            "reading the command line: got -mlir-print-ir-after without a value, needed -mlir-print-ir-after PASSES",
        ),
        (
            ["-output-split-marker"],
            "reading the command line: got -output-split-marker without a value, needed -output-split-marker TEXT",
        ),
        (["-symbol-dce==x"], "reading pass options: got '=x', needed name=value"),
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
    assert run(*argv) == (2, "", f"error: {message}\n")


def test_parsing_alone_refuses_too() -> None:
    with pytest.raises(UsageError, match="unknown flag '-zzz'"):
        parse_command(["-zzz"])


@pytest.mark.parametrize("argv", [["--help"], ["-help"], ["-h"], ["-symbol-dce", "--help", "-zzz"]])
def test_help(argv: list[str]) -> None:
    assert run(*argv) == (0, help_text(), "")


FLAGS = {
    "-o", "-pass-pipeline", "-output-split-marker", "-mlir-print-ir-before", "-mlir-print-ir-after",
    "-mlir-elide-elementsattrs-if-larger", "-mlir-elide-resource-strings-if-larger", "-split-input-file",
    "-verify-diagnostics", "-verify-each", "-allow-unregistered-dialect", "-isolate", "-mlir-print-op-generic",
    "-mlir-print-debuginfo", "-mlir-pretty-debuginfo", "-mlir-print-local-scope", "-mlir-use-nameloc-as-prefix",
    "-emit-bytecode", "-mlir-timing", "-mlir-print-ir-before-all", "-mlir-print-ir-after-all",
    "-mlir-print-ir-after-change", "-mlir-print-ir-after-failure", "-mlir-print-ir-module-scope", "-dump-pass-pipeline", "-show-passes",
}  # fmt: skip
IGNORED = {
    "-no-implicit-module", "-mlir-print-op-on-diagnostic", "-mlir-disable-threading",
    "-mlir-print-stacktrace-on-diagnostic", "-mlir-timing-display",
}  # fmt: skip


def flags_in(text: str) -> set[str]:
    """The flags that a part of the help lists."""
    return {line.split()[0].partition("=")[0].partition("[")[0] for line in text.splitlines() if line[:3] == "  -"}


def test_help_names_every_flag_pass_and_pipeline() -> None:
    text = help_text()
    assert text.startswith("usage: pyshardy-opt ")
    flags, ignored = text.partition("\nflags of MLIR that are accepted and change nothing:\n")[::2]
    ignored, passes = ignored.partition("\npipelines:\n")[::2]
    assert flags_in(flags) == FLAGS
    assert flags_in(ignored) == IGNORED
    assert flags_in(passes) == {f"-{name}" for name in [*PASSES, *PIPELINES]}


def test_help_says_what_verifying_costs() -> None:
    (line,) = (line for line in help_text().splitlines() if line.startswith("  -verify-each"))
    assert "several times slower" in line


@pytest.mark.parametrize("argv", [["--show-passes"], ["-show-passes", "missing.mlir"]])
def test_passes_are_listed_with_what_they_do(argv: list[str]) -> None:
    assert run(*argv) == (0, passes_text(), "")
    lines = passes_text().splitlines()
    listed = [line.split(maxsplit=1) for line in lines if line.startswith("  --")]
    assert [name for name, _ in listed] == [f"--{name}" for name in [*PASSES, *PIPELINES]]
    for name, text in listed[: len(PASSES)]:
        assert text == (pass_class(name[2:]).__doc__ or "").splitlines()[0]
        assert text.endswith(".")
