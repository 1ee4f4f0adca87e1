"""Tables that tools write into docs/search.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "search.md"
END = "<!-- end -->"


def begin(tool: str) -> str:
    """The line above the text that a tool writes."""
    return f"<!-- written by python -m search.{tool} --write -->"


def write_part(tool: str, text: str, page: Path = PAGE) -> None:
    """Replace the text that a tool wrote before.

    Raises:
        ValueError: The page has no place for it.
    """
    before, rest = page.read_text().split(begin(tool))
    page.write_text(f"{before}{begin(tool)}\n{text}\n{END}{rest.split(END, 1)[1]}")


def read_part(tool: str, page: Path = PAGE) -> str:
    """The text that a tool wrote."""
    return page.read_text().split(begin(tool))[1].split(END)[0].strip()


def markdown(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)
