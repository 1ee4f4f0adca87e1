"""The commands of docs/compilers.md, where the compilers are installed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from pyshardy.cli.main import main
from pyshardy.compilers.plugins import is_installed

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "compilers.md").read_text()
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]


def test_the_page_has_a_command_of_every_kind() -> None:
    assert [shlex.split(command)[1] for command in COMMANDS] == [
        "show", "explain", "partition", "cost", "diff", "search", "confirm",
    ]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = shlex.split(command)[1:]
    platform = arguments[arguments.index("--compiler") + 1].partition(":")[0]
    if not is_installed(platform):
        pytest.skip(f"the compiler for {platform} is not installed beside this Python")
    monkeypatch.chdir(ROOT)
    assert main(arguments) == 0
    said = capsys.readouterr().out
    if arguments[0] in ("show", "explain", "partition", "confirm"):
        assert said.splitlines()[0].partition("compiled by ")[2].startswith(("libtpu ", "XLA for GPUs"))
    assert len(said.splitlines()) > 1
