"""What the tests of patches read of diffs."""

from __future__ import annotations


def added(diff: str) -> list[str]:
    """The lines that a diff adds."""
    return [line[1:] for line in diff.splitlines() if line.startswith("+") and not line.startswith("+++")]
