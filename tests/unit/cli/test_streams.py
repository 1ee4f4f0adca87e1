"""Where commands write: terminals, pipes, closed and full outputs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pyshardy
from pyshardy.cli.main import main
from support.tables import tables_in

from .command_line import Cli, Piped, Terminal
from .processes import run_process, run_without
from .sample_modules import MLP

pytestmark = pytest.mark.slow

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
    assert (found.returncode, found.stderr) == (1, b"error: writing to standard output: got a closed stream\n")


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
