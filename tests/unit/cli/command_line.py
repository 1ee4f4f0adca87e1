"""What a command line of `pyshardy` gives."""

from __future__ import annotations

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
