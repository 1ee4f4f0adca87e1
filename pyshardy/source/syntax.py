"""The syntax of the user's files, and the functions in them that return what they constrain."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from pyshardy.core.intern import register_cache
from pyshardy.source.assignments import read_lines
from pyshardy.source.places import SourcePlace

CONSTRAIN = "with_sharding_constraint"


def syntax_tree(file: str) -> ast.Module | None:
    """The syntax of a file; None if it cannot be read, or is not Python."""
    return _parsed("".join(read_lines(file)))


@lru_cache(maxsize=64)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def name_of(node: ast.expr) -> str:
    """The last name of an expression such as `jax.jit`; empty for another one."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def assigned(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What a statement assigns, each with its value; tuples part by part."""
    for target in node.targets:
        value = node.value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            yield from zip(target.elts, value.elts)
        else:
            yield target, value


def helpers_of(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """The functions of a file that constrain what they are given, and return that."""
    for node in ast.walk(tree):
        returned = node.body[-1] if isinstance(node, ast.FunctionDef) else None
        call = returned.value if isinstance(returned, ast.Return) else None
        if isinstance(node, ast.FunctionDef) and isinstance(call, ast.Call) and name_of(call.func) == CONSTRAIN:
            given = {one.arg for one in (*node.args.posonlyargs, *node.args.args)}
            made = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
            if call.args and isinstance(call.args[0], ast.Name) and call.args[0].id in given - made:
                yield node


def constrainers(tree: ast.Module) -> set[str]:
    """The names by which a file constrains: `with_sharding_constraint`, what stands for it, and its own helpers."""
    others = (
        name_of(target)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and name_of(node.value) == CONSTRAIN
        for target in node.targets
    )
    return {CONSTRAIN, *filter(None, others), *(one.name for one in helpers_of(tree))}


def is_in_helper(place: SourcePlace) -> bool:
    """Whether a line is in a function that returns what it constrains.

    Args:
        place: The file and the line.
    """
    text = "".join(read_lines(place[0]))
    return any(first <= place[1] <= last for first, last in _helper_lines(text))


@lru_cache(maxsize=32)
def _helper_lines(text: str) -> tuple[tuple[int, int], ...]:
    tree = _parsed(text)
    return () if tree is None else tuple((one.lineno, one.end_lineno or one.lineno) for one in helpers_of(tree))


register_cache(_helper_lines.cache_clear)
register_cache(_parsed.cache_clear)
