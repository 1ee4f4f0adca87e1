"""Draws the rooms of the package: which folder imports which, as Mermaid for `CONTRIBUTING.md`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "pyshardy"
_PLACE = re.compile(r"(?<=<!-- rooms -->\n).*(?=<!-- /rooms -->)", re.DOTALL)
LEFT_OUT = ("errors", "__init__", "__main__", "opt", "pytest_plugin", "examples")
"""What nearly everything imports, and the doors."""


def rooms_imported(source: str) -> Iterator[str]:
    """The rooms that a source imports from, anywhere in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pyshardy."):
            yield str(node.module).split(".")[1]


def imports() -> dict[str, set[str]]:
    """The rooms that every room imports from."""
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        found.setdefault(room, set()).update(rooms_imported(path.read_text()))
    return {room: below - {room, *LEFT_OUT} for room, below in found.items() if room not in LEFT_OUT}


def direct(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """The edges without those that a longer way replaces.

    >>> direct({"a": set(), "b": {"a"}, "c": {"a", "b"}})
    {'a': set(), 'b': {'a'}, 'c': {'b'}}
    """
    reached: dict[str, set[str]] = {}

    def reach(room: str) -> set[str]:
        if room not in reached:
            reached[room] = edges[room].union(*(reach(below) for below in edges[room]))
        return reached[room]

    return {
        room: {below for below in rooms if not any(below in reach(other) for other in rooms)}
        for room, rooms in edges.items()
    }


def drawing() -> str:
    """The drawing; an arrow leads from a room to one that it imports."""
    lines = [f"  {room} --> {below}" for room, rooms in sorted(direct(imports()).items()) for below in sorted(rooms)]
    return "\n".join(["```mermaid", "graph TD", *lines, "```"]) + "\n"


def with_rooms(page: str) -> str:
    """A page with the drawing between its marks."""
    return _PLACE.sub(lambda _: f"\n{drawing()}\n", page)
