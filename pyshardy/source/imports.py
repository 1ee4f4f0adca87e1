"""The user's files that a file imports."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator

from pyshardy.source.places import is_library
from pyshardy.source.syntax import syntax_tree

_MOST_UP = 4
"""The folders above a file in which its imports may begin: those of the packages that it is in."""
_MOST_FILES = 40


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


def with_imported(files: Iterable[str]) -> list[str]:
    """Files, and then the user's files that these import, and those that these import.

    Args:
        files: The files.
    """
    found = list(files)
    for file in found:  # it grows
        tree = syntax_tree(file)
        for other, _ in imports_of(file, tree) if tree is not None else ():
            if other not in found and len(found) < _MOST_FILES:
                found.append(other)
    return found


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
