"""Running command lines in this process."""

from __future__ import annotations

from typing import Any

import pytest

from pyshardy.cli.main import main

from .command_line import Cli, Outcome


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command line in this process."""

    def run(*args: Any) -> Outcome:
        status = main([str(arg) for arg in args])
        return Outcome(status, *capsys.readouterr())

    return run
