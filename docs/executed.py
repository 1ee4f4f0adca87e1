"""Python on the pages: which blocks run together, and what they print.

A block runs by itself. One that is marked `next` goes on where the block before it has ended. What a block prints may
stand behind it, under a line "prints"; a line `...` stands there for any lines. One that is marked `packages` needs
published packages, which `make test-packages` installs, and runs there, where the packages that it imports are.
"""

from __future__ import annotations

import contextlib
import io
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_BLOCK = re.compile(
    r"^```python(?P<packages> packages)?(?P<next> next)?\n(?P<code>.*?)^```\n"
    r"(?:\nprints\n\n```text\n(?P<printed>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
_IMPORT = re.compile(r"^(?:import|from) ([a-z_]+)", re.MULTILINE)
_EXAMPLE = re.compile(r"examples/frameworks/\w+\.py")


@dataclass(frozen=True)
class Block:
    """A block of Python, and what the page says that it prints; None if it says nothing."""

    code: str
    printed: str | None


def groups(text: str, packages: bool = False) -> list[list[Block]]:
    """The blocks of a page that need published packages, or none; those together that run together."""
    found: list[list[Block]] = []
    for match in _BLOCK.finditer(text):
        if bool(match["packages"]) != packages:
            continue
        if not match["next"]:
            found.append([])
        found[-1].append(Block(match["code"], match["printed"]))
    return found


def missing(code: str) -> list[str]:
    """The packages that Python code imports, or the examples that a command names, and that are not installed.

    >>> missing("import json\\nimport no_package.part"), missing("pyshardy watch train.py")
    (['no_package'], [])
    """
    texts = [code, *(Path(name).read_text() for name in _EXAMPLE.findall(code))]
    names = dict.fromkeys(name for text in texts for name in _IMPORT.findall(text))
    return [name for name in names if find_spec(name) is None]


def matches(expected: str, found: str) -> bool:
    """Whether a text is what is expected, where a line `...` stands for any lines."""
    parts = [re.escape(part) for part in re.split(r"^\.\.\.\n", expected, flags=re.MULTILINE)]
    return re.fullmatch("(?:.*\n)*".join(parts), found) is not None


def outputs(group: list[Block]) -> list[str]:
    """What the blocks of a group print, each."""
    Path("build").mkdir(exist_ok=True)  # where they write
    names: dict[str, Any] = {"__name__": "__main__"}
    return [_output(block.code, names) for block in group]


def _output(code: str, names: dict[str, Any]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        exec(compile(code, "example.py", "exec"), names)
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().rstrip().splitlines())


def with_output(text: str, packages: bool = False) -> str:
    """A page with what its blocks print, where it says that they print something; one with `...` stays."""
    found = groups(text, packages)
    if not any(block.printed is not None for group in found for block in group):
        return text
    printed = iter([said for group in found for said in outputs(group)])

    def filled(match: re.Match[str]) -> str:
        if bool(match["packages"]) != packages:
            return match[0]
        said = next(printed)
        if match["printed"] is None or "\n...\n" in f"\n{match['printed']}":
            return match[0]
        begin, end = match.span("printed")
        return match[0][: begin - match.start()] + said + match[0][end - match.start() :]

    return _BLOCK.sub(filled, text)
