"""Running command lines in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyshardy.cli.main import main

from .command_line import Cli, Outcome
from .opt_command_line import Put


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command line in this process."""

    def run(*args: Any) -> Outcome:
        status = main([str(arg) for arg in args])
        return Outcome(status, *capsys.readouterr())

    return run


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Writes a module to a file and gives its path."""

    def write(content: str | bytes, name: str = "in.mlir") -> str:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write
