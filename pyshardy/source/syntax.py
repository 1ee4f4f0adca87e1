"""The syntax of the user's files, and the functions in them that return what they constrain."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from pyshardy.core.intern import register_cache
from pyshardy.source.assignments import read_lines
from pyshardy.source.places import SourcePlace

CONSTRAIN = "with_sharding_constraint"
SPECS = frozenset(("P", "PS", "PartitionSpec"))
"""What a spec is called."""

_PUTTING = frozenset(("device_put", "NamedSharding"))


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


def constraining_calls(tree: ast.Module, line: int) -> list[ast.Call]:
    """The calls on a line that constrain their first argument, as far as they say so.

    That are those of `with_sharding_constraint` or of what stands for it, or else those of a function that comes from
    elsewhere, as an argument, and gets a value and a spec.
    """
    names = constrainers(tree)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args and node.lineno == line]
    named = [call for call in calls if name_of(call.func) in names]
    made = {name_of(target) for one in ast.walk(tree) if isinstance(one, ast.Assign) for target in one.targets}
    given = [call for call in calls if name_of(call.func) not in made | _PUTTING]
    return named or [call for call in given if len(call.args) == 2 and _is_spec(call.args[1])]


def _is_spec(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and name_of(node.func) in SPECS


def writes_a_constraint(place: SourcePlace) -> bool:
    """Whether a line constrains one value to a spec that it writes out.

    Args:
        place: The file and the line.
    """
    return place[1] in _lines_with_specs("".join(read_lines(place[0])))


@lru_cache(maxsize=32)
def _lines_with_specs(text: str) -> frozenset[int]:
    """The lines that constrain one value to a spec that they write out."""
    tree = _parsed(text)
    specs = (node for node in (() if tree is None else ast.walk(tree)) if isinstance(node, ast.expr) and _is_spec(node))
    lines = {node.lineno for node in specs}
    return frozenset(line for line in lines if tree is not None and _is_spec_of_one(constraining_calls(tree, line)))


def _is_spec_of_one(calls: list[ast.Call]) -> bool:
    """Whether there is one call, with a spec among its arguments behind the first."""
    nodes = [node for call in calls for one in call.args[1:] for node in ast.walk(one)]
    return len(calls) == 1 and any(isinstance(node, ast.expr) and _is_spec(node) for node in nodes)


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
register_cache(_lines_with_specs.cache_clear)
register_cache(_parsed.cache_clear)
