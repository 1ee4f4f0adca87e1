"""The user's files that a file imports."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from pyshardy.source.places import is_library

_MOST_UP = 4
"""The folders above a file in which its imports may begin: those of the packages that it is in."""


def imports_of(file: str, tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The user's files that a file imports from, each with the module as the file writes it, such as ".layout".

    Args:
        file: The file.
        tree: Its syntax.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [(node.level, module), *((node.level, f"{module}.{one.name}".strip(".")) for one in node.names)]
        else:
            continue
        for level, name in names:
            found = _file_of(file, level, name) if name else None
            if found is not None:
                yield found, "." * level + name


def _file_of(file: str, level: int, name: str) -> str | None:
    """The file of a module that a file imports; None if it is none of the user's."""
    folder, path = os.path.dirname(file), os.path.join(*name.split("."))
    above = [os.path.join(folder, *[os.pardir] * count) for count in range(_MOST_UP)]
    for start in above[level - 1 : level] if level else above:
        for end in (f"{path}.py", os.path.join(path, "__init__.py")):
            found = os.path.normpath(os.path.join(start, end))
            if os.path.isfile(found) and not is_library(found) and found != os.path.normpath(file):
                return found
    return None
