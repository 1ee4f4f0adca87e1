"""The calls in the user's files that constrain a value, and the functions that these go through."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache

from pyshardy.core.intern import register_cache
from pyshardy.source.assignments import read_lines
from pyshardy.source.imports import imports_of
from pyshardy.source.meanings import is_literal, name_of, names_bound
from pyshardy.source.places import SourcePlace
from pyshardy.source.syntax import syntax_tree

CONSTRAIN, _RESHARD = "with_sharding_constraint", "reshard"
"""What constrains a value by a spec; the latter where JAX knows all shardings (`AxisType.Explicit`)."""
CONSTRAIN_BY_NAMES = frozenset(("with_logical_constraint", "logical_constraint"))
"""The functions of flax that constrain a value by names of its dimensions."""
SPECS = frozenset(("P", "PS", "PartitionSpec"))
"""What a spec is called."""
_PUTTING = frozenset(("device_put", "NamedSharding"))


@lru_cache(maxsize=64)
def helpers_of(tree: ast.Module) -> tuple[ast.FunctionDef, ...]:
    """The functions of a file that constrain what they are given, and return that.

    Args:
        tree: The syntax of the file.
    """
    return tuple(_helpers(tree))


def _helpers(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(tree):
        returned = node.body[-1] if isinstance(node, ast.FunctionDef) else None
        call = returned.value if isinstance(returned, ast.Return) else None
        if isinstance(node, ast.FunctionDef) and isinstance(call, ast.Call) and _is_constraining(call):
            given = {one.arg for one in (*node.args.posonlyargs, *node.args.args)}
            made = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
            if call.args and isinstance(call.args[0], ast.Name) and call.args[0].id in given - made:
                yield node


def helpers_known_in(file: str) -> Mapping[str, ast.FunctionDef]:
    """The functions that constrain what they are given, of a file and of those of the user's files that it imports.

    Args:
        file: The file.
    """
    tree = syntax_tree(file)
    if tree is None:
        return {}
    imported = (syntax_tree(other) for other, _ in imports_of(file, tree))
    return {one.name: one for known in (*imported, tree) if known is not None for one in helpers_of(known)}


def constraining_calls(file: str, line: int) -> list[ast.Call]:
    """The calls on a line that constrain their first argument, as far as they say so.

    That are those of `with_sharding_constraint`, of what stands for it and of helpers, or else those of a function that
    comes from elsewhere, as an argument, and gets a value and a spec.

    Args:
        file: The file.
        line: The line.
    """
    tree, names = syntax_tree(file), helpers_known_in(file)
    nodes = [] if tree is None else list(ast.walk(tree))
    calls = [node for node in nodes if isinstance(node, ast.Call) and node.args and node.lineno == line]
    named = [call for call in calls if _is_constraining(call) or name_of(call.func) in names]
    made = {name_of(target) for one in nodes if isinstance(one, ast.Assign) for target in one.targets}
    given = [call for call in calls if name_of(call.func) not in made | _PUTTING]
    return named or [call for call in given if len(call.args) == 2 and _is_spec(call.args[1])]


def constrains_alike(place: SourcePlace) -> bool:
    """Whether a line constrains one value, and to the same spec whatever calls its function.

    That is the case where nothing in the spec is a variable of a function, as `P("data")` or the `ROWS` of the file.

    Args:
        place: The file and the line.
    """
    return _constrains_alike(place[0], "".join(read_lines(place[0])), place[1])


@lru_cache(maxsize=1024)
def _constrains_alike(file: str, text: str, line: int) -> bool:
    tree, calls = syntax_tree(file), constraining_calls(file, line)
    if tree is None or len(calls) != 1 or not (calls[0].args[1:] or name_of(calls[0].func) in helpers_known_in(file)):
        return False
    nodes = [node for one in (*calls[0].args[1:], *calls[0].keywords) for node in ast.walk(one)]
    names = {node.id for node in nodes if isinstance(node, ast.Name) and not is_literal(node)}
    functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.Lambda)]
    around = [one for one in functions if one.lineno <= line <= (one.end_lineno or 0)]
    return names.isdisjoint(name for one in around for name in names_bound(one))


def takes_a_spec(call: ast.Call) -> bool:
    """Whether a call is one of the functions of JAX that constrain a value by a spec."""
    return name_of(call.func) in (CONSTRAIN, _RESHARD)


def _is_constraining(call: ast.Call) -> bool:
    return takes_a_spec(call) or name_of(call.func) in CONSTRAIN_BY_NAMES


def _is_spec(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and name_of(node.func) in SPECS


def is_in_helper(place: SourcePlace) -> bool:
    """Whether a line is in a function that returns what it constrains.

    Args:
        place: The file and the line.
    """
    text = "".join(read_lines(place[0]))
    return any(first <= place[1] <= last for first, last in _helper_lines(place[0], text))


@lru_cache(maxsize=32)
def _helper_lines(file: str, text: str) -> tuple[tuple[int, int], ...]:
    tree = syntax_tree(file)
    return () if tree is None else tuple((one.lineno, one.end_lineno or one.lineno) for one in helpers_of(tree))


register_cache(_helper_lines.cache_clear)
register_cache(helpers_of.cache_clear)
register_cache(_constrains_alike.cache_clear)
