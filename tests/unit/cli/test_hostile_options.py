"""Every option of every command, with values that make no sense: one error each, or an answer, and never a traceback."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyshardy.cli.arguments import make_parser
from pyshardy.cli.main import main
from support.marks import ALL_TESTS

from .test_hostile import check

pytestmark = pytest.mark.slow

PROGRAM = """sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>} loc("a")) -> tensor<8x4xf32> {
  %0 = stablehlo.tanh %a : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}"""
DIGITS = "9" * 5000
VALUES = (
    "", "a\0b", "\udcff\udc80", "/", "missing/file", "[", "=", "a=zz", f"a=x@{DIGITS}", f"a=x:({DIGITS})2", "x=-1", f"x={DIGITS}",
    DIGITS, "-1", "nan", "1e999", str(2**63), f"in.mlir:{DIGITS}", f"a[0..{DIGITS}]",
)  # fmt: skip
NEEDED = {
    "completion": ["bash"],
    "cost": ["in.mlir", "--hardware", "v5p"],
    "diff": ["in.mlir", "in.mlir"],
    "explain": ["in.mlir", "a"],
    "report": ["in.mlir", "--no-hints"],
    "search": ["in.mlir", "--hardware", "v5p", "--budget", "0.01", "--quiet"],
}
"""What a command needs beside the option; other commands need a file."""
LONG = ("--devices", "--isolate")
"""Options that start processes or devices; `test_hostile.py` and `test_isolate.py` try them."""


def commands() -> dict[str, argparse.ArgumentParser]:
    """The parsers of all commands but `watch`: its status is that of a script. `test_watch_command.py` tries it."""
    found = next(action for action in make_parser()._actions if isinstance(action, argparse._SubParsersAction))
    return {name: parser for name, parser in found.choices.items() if name != "watch"}


def lines(command: str, parser: argparse.ArgumentParser) -> Iterator[list[str]]:
    """Command lines with every value in the place of every argument, and every third in that of every option."""
    needed = NEEDED.get(command, ["in.mlir"])
    for number, action in enumerate(parser._actions):
        option = next((name for name in action.option_strings if name.startswith("--")), "")
        if action.dest == "help" or option in LONG:
            continue
        if not option:
            yield from ([command, value] for value in VALUES)
        elif action.nargs == 0:
            yield [command, *needed, option]
        else:
            some = VALUES if ALL_TESTS in os.environ else VALUES[number % 3 :: 3]
            yield from ([command, *needed, f"{option}={value}"] for value in some)
    yield from ([command, *needed, value] for value in VALUES if not value.startswith("-"))


def wrong(line: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What is wrong with the answer to a command line; nothing if all is well."""
    shown = f"{[part[:40] for part in line]}: "
    try:
        status = main(line)
        errors = capsys.readouterr().err
        check(0 if status in (1, 3) and not errors else status, errors)  # diff and run compare, search finds no plan
    except BaseException as error:  # noqa: BLE001 (whatever it is, it is wrong)
        return f"{shown}{type(error).__name__}: {error}"[:400]
    return ""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("command", commands())
def test_values_of_options(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.mlir").write_text(PROGRAM)
    tried = list(lines(command, commands()[command]))
    assert len(tried) > len(VALUES)
    assert [found for line in tried if (found := wrong(line, capsys))] == []


def test_what_is_wrong_is_noticed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.modules[__name__], "main", lambda line: [][len(line)])
    assert wrong(["show", "x"], capsys) == "['show', 'x']: IndexError: list index out of range"
    monkeypatch.setattr(sys.modules[__name__], "main", lambda line: 2)
    assert wrong(["show", "x"], capsys).startswith("['show', 'x']: AssertionError")
