"""The command line of `pyshardy watch`; tests/unit/watching has the scripts."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from pyshardy.cli.watch_command import _next_line
from pyshardy.watching.found import Found
from pyshardy.watching.running import Compiled

from .command_line import Cli, Outcome


def test_wrong_options_are_refused_before_the_script_runs(cli: Cli, tmp_path: Path) -> None:
    script, mark = tmp_path / "train.py", tmp_path / "ran"
    script.write_text(f"open({str(mark)!r}, 'w')")

    def refused(*options: str) -> Outcome:
        found = cli("watch", *options, script)
        assert (found.status, found.out, mark.exists()) == (2, "", False)
        return found

    assert refused("--json").err == (
        "error: reading the command line: got --json, needed --output FILE, or - to write behind the output of the script\n"
    )
    assert "got 'v99', needed one of a100" in refused("--chip", "v99").err
    assert "got 'gpu', needed tpu:v5e:2x4" in refused("--compiler", "gpu").err
    assert "got '0', needed a whole number from 1" in refused("--stop-after", "0").err
    assert "got '5000', needed a whole number from 1 to 4096" in refused("--devices", "5000").err
    (tmp_path / "file").touch()
    assert "writing the report to" in refused("--report", str(tmp_path / "file")).err
    assert "got no directory" in refused("-o", str(tmp_path / "none" / "out")).err


@pytest.mark.parametrize(
    "compiler, behind",
    [("tpu:v5e", "--hardware v5e --compiler tpu:v5e"), ("none", "--hardware v5e"), ("", "--hardware v5e")],
)
def test_the_next_command_asks_the_compiler_that_was_asked(compiler: str, behind: str) -> None:
    """Its figures are then those of the tables."""
    data: dict[str, Any] = {"compiler": compiler, "cost": {"estimated": {"exposed_seconds": 1e-3}}}
    found = Found(1, Compiled("", "jit_step", 8, ""), 1, data=data, page="01-jit_step.html")
    said = _next_line([found], Namespace(report="pages", hardware="v5e"))
    assert said.endswith(f"doctor pages/01-jit_step.mlir {behind}")
