"""The syntax of the user's files."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from copy import deepcopy
from functools import lru_cache

from pyshardy.core.intern import register_cache
from pyshardy.source.assignments import read_lines
from pyshardy.source.imports import imports_of
from pyshardy.source.meanings import Literal, literals_in, mark

_MOST_FILES = 40
"""The files that imports are followed to."""


def syntax_tree(file: str) -> ast.Module | None:
    """The syntax of a file, its names marked with what they stand for; None if it cannot be read, or is not Python."""
    text = "".join(read_lines(file))
    modules = _modules(file, text)
    return _marked(text, tuple((name, "".join(read_lines(other))) for name, other in modules))


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


@lru_cache(maxsize=64)
def _modules(file: str, text: str) -> tuple[tuple[str, str], ...]:
    """The user's modules that a file imports from, as it writes them, each with its file."""
    tree = _parsed(text)
    return () if tree is None else tuple((name, other) for other, name in imports_of(file, tree))


@lru_cache(maxsize=64)
def _marked(text: str, modules: tuple[tuple[str, str], ...]) -> ast.Module | None:
    tree = _parsed(text)
    return None if tree is None else mark(deepcopy(tree), {name: _literals(other) for name, other in modules})


@lru_cache(maxsize=64)
def _literals(text: str) -> dict[str, Literal]:
    """The variables at the top of a file that are written out there."""
    tree = _parsed(text)
    return {} if tree is None else literals_in(mark(deepcopy(tree), {}))


@lru_cache(maxsize=64)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


register_cache(_literals.cache_clear)
register_cache(_marked.cache_clear)
register_cache(_modules.cache_clear)
register_cache(_parsed.cache_clear)
