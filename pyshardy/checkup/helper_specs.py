"""Changes of functions of the user's that choose the spec of each array of a tree, as diffs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pyshardy.core.axes import Dims
from pyshardy.core.spec import format_spec
from pyshardy.frontend.interface import InterfaceTensor
from pyshardy.report.patch import file_diff, name_of_class
from pyshardy.source.assignments import read_lines
from pyshardy.source.syntax import name_of, syntax_tree

_MAPS = frozenset(("map", "tree_map", "map_with_path", "tree_map_with_path"))
_WITH_PATH = "with_path"
_KEY = re.compile(r"\[[^\]]*\]|\.\w+")
_NUMBER = re.compile(r"\[\d+\]")
_HOLDERS = (".value", ".raw_value")
"""What flax calls what holds an array; a path of its tree ends there or before."""
_SPEC, _SHARDING = "PartitionSpec", "NamedSharding"


class _Chooser(NamedTuple):
    """A function that returns the spec of an array by its path or its shape.

    Attributes:
        function: The function.
        path: The parameter that is the path of an array; empty if there is none.
        shape: The shape of an array as code in the function; empty if it does not get the array.
    """

    function: ast.FunctionDef
    path: str
    shape: str


def helper_patch(files: Iterable[str], inputs: Sequence[InterfaceTensor], changed: Mapping[int, Dims]) -> str:
    """A diff that lets the function which chooses specs by path or shape return others for some inputs.

    Args:
        files: Where to look; the first one that has such a function counts.
        inputs: All inputs of the program.
        changed: The new axes of inputs by their number.

    Returns:
        The diff; empty if a file has no such function or several, or if neither the ends of their names nor their
        shapes tell these inputs from others.
    """
    for file in files:
        tree = syntax_tree(file)
        found = [] if tree is None else list(_choosers(tree))
        if tree is None or not found:
            continue
        if len(found) > 1:
            return ""
        conditions = _conditions(found[0], inputs, changed)
        return _patch(file, tree, found[0], conditions) if conditions else ""
    return ""


def _choosers(tree: ast.Module) -> Iterator[_Chooser]:
    """The functions of a file that choose specs, which it maps over a tree."""
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    seen = set()
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or name_of(call.func) not in _MAPS or not call.args:
            continue
        mapped = functions.get(name_of(call.args[0])) or call.args[0]
        if not isinstance(mapped, ast.FunctionDef | ast.Lambda):
            continue
        given = [one.arg for one in mapped.args.args]
        has_path = name_of(call.func).endswith(_WITH_PATH)
        path, leaf = (given[0] if has_path and given else ""), next(iter(given[has_path : has_path + 1]), "")
        for function, own_path, shape in _called(mapped, functions, path, leaf):
            if function.name not in seen and any(map(_is_spec, _returned(function))):
                seen.add(function.name)
                yield _Chooser(function, own_path, shape)


def _called(
    mapped: ast.FunctionDef | ast.Lambda, functions: Mapping[str, ast.FunctionDef], path: str, leaf: str
) -> Iterator[tuple[ast.FunctionDef, str, str]]:
    """A mapped function and those that it calls with the path, the array or its shape."""
    if isinstance(mapped, ast.FunctionDef):
        yield mapped, path, f"{leaf}.shape" if leaf else ""
    for call in ast.walk(mapped):
        function = functions.get(name_of(call.func)) if isinstance(call, ast.Call) else None
        if function is None or not isinstance(call, ast.Call):
            continue
        texts = dict(zip([one.arg for one in function.args.args], map(ast.unparse, call.args)))
        own = {text: name for name, text in texts.items()}
        shape = f"{own[leaf]}.shape" if leaf in own else own.get(f"{leaf}.shape", "")
        yield function, own.get(path, ""), shape


def _returned(function: ast.FunctionDef) -> list[ast.expr]:
    given = [one.value for one in ast.walk(function) if isinstance(one, ast.Return) and one.value is not None]
    return [part for one in given for part in ((one.body, one.orelse) if isinstance(one, ast.IfExp) else (one,))]


def _is_spec(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and name_of(node.func) in ("P", "PS", _SPEC, _SHARDING)


def _conditions(chooser: _Chooser, inputs: Sequence[InterfaceTensor], changed: Mapping[int, Dims]) -> dict[str, Dims]:
    """For each condition as code the axes that hold under it: by the end of a path, or else by a shape."""
    ends: dict[str, set[Dims | None]] = {}
    shapes: dict[tuple[int, ...], set[Dims | None]] = {}
    wanted = {_end(one.name) for one in inputs if one.index in changed}
    for one in inputs:
        for end in [end for end in wanted if _path(one.name).endswith(end)]:
            ends.setdefault(end, set()).add(changed.get(one.index))
        shapes.setdefault(one.shape, set()).add(changed.get(one.index))
    if chooser.path and "" not in wanted and all(len(ends[end]) == 1 for end in wanted):
        keystr = f"jax.tree_util.keystr({chooser.path})"
        alike = _by_dims({_quoted(end): new for end in sorted(wanted) for new in ends[end]})
        return {f"{keystr}.endswith({_one_or_tuple(texts)})": new for new, texts in alike.items()}
    own = sorted({one.shape for one in inputs if one.index in changed})
    if chooser.shape and all(len(shapes[shape]) == 1 for shape in own):
        same = _by_dims({repr(shape): new for shape in own for new in shapes[shape]})
        return {
            f"{chooser.shape} {'in' if len(texts) > 1 else '=='} {_one_or_tuple(texts)}": new
            for new, texts in same.items()
        }
    return {}


def _by_dims(news: Mapping[str, Dims | None]) -> dict[Dims, list[str]]:
    found: dict[Dims, list[str]] = {}
    for text, new in news.items():
        if new is not None:
            found.setdefault(new, []).append(text)
    return found


def _one_or_tuple(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def _path(name: str) -> str:
    """The path of an input in its argument, as `keystr` writes it without what flax adds."""
    for holder in _HOLDERS:
        name = name.removesuffix(holder)
    return name


def _end(name: str) -> str:
    """The end of the path of an input behind the last number, of at most two keys.

    >>> _end("frozen.blocks[3].up.base"), _end("params['layers']['w1']")
    ('.up.base', "['layers']['w1']")
    """
    keys: list[str] = []
    for key in reversed(_KEY.findall(_path(name))):
        if _NUMBER.fullmatch(key) or len(keys) == 2:
            break
        keys.insert(0, key)
    return "".join(keys)


def _quoted(text: str) -> str:
    return f'"{text}"' if "'" in text else repr(text)


def _patch(file: str, tree: ast.Module, chooser: _Chooser, conditions: Mapping[str, Dims]) -> str:
    """A diff with one more case for each condition at the beginning of a function."""
    function, lines = chooser.function, read_lines(file)
    sharding = next(
        (one for one in _returned(function) if isinstance(one, ast.Call) and name_of(one.func) == _SHARDING), None
    )
    first = function.body[0]
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(function.body) > 1
    at = function.body[1 if is_text else 0].lineno - 1
    indent = " " * function.body[0].col_offset
    new = []
    for condition, dims in conditions.items():
        spec = format_spec(dims, name_of_class(tree, _SPEC))
        text = (
            f"{ast.unparse(sharding.func)}({ast.unparse(sharding.args[0])}, {spec})" if sharding is not None else spec
        )
        new += [f"{indent}if {condition}:\n", f"{indent}    return {text}\n"]
    return file_diff(file, lines, [*lines[:at], *new, *lines[at:]])
