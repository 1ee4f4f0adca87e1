"""Applies the patch of a plan to a copy of the source, and imports it."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")


def apply_patch(lines: Sequence[str], patch: str) -> list[str]:
    """The lines of a file behind a unified diff of it; what it takes away or keeps has to be there."""
    found, at, is_inside = [], 0, False
    for line in patch.splitlines(keepends=True):
        hunk = _HUNK.match(line)
        if hunk is not None:
            found += lines[at : int(hunk[1]) - 1]
            at, is_inside = int(hunk[1]) - 1, True
        elif is_inside and line[0] in " -":
            assert lines[at] == line[1:], (lines[at], line)
            found += [line[1:]] if line[0] == " " else []
            at += 1
        elif is_inside and line[0] == "+":
            found.append(line[1:])
    assert is_inside, "no diff"
    return [*found, *lines[at:]]


def imported(path: Path, lines: Sequence[str]) -> ModuleType:
    """A new file with these lines, as a module."""
    path.write_text("".join(lines))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
