"""What a command line of `pyshardy` gives."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import NamedTuple


class Outcome(NamedTuple):
    """The exit status, and what was written to standard output and standard error."""

    status: int
    out: str
    err: str

    @property
    def verdict(self) -> str:
        """The last line of the output."""
        return self.out.splitlines()[-1]


Cli = Callable[..., Outcome]
"""Runs a command line."""


class Terminal(io.StringIO):
    """A stream that looks like a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class TerminalOfBytes(Terminal):
    """One that takes bytes, too."""

    def __init__(self) -> None:
        super().__init__()
        self.buffer = io.BytesIO()


class Piped(io.StringIO):
    """A stream that does not."""

    encoding = "utf-8"
