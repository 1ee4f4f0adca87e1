"""Changes of functions of the user's that choose the spec of each array of a tree, as diffs."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pyshardy.checkup.patching.source import replaced_all
from pyshardy.checkup.patching.written_specs import stated_in
from pyshardy.checkup.program.families import dims_of
from pyshardy.core.axes import Dims
from pyshardy.core.spec import format_spec
from pyshardy.frontend.interface import InterfaceTensor
from pyshardy.report.patch import file_diff, name_of_class
from pyshardy.report.rules import without_end
from pyshardy.source.assignments import read_lines
from pyshardy.source.meanings import name_of
from pyshardy.source.syntax import syntax_tree

_MAPS = frozenset(("map", "tree_map", "map_with_path", "tree_map_with_path"))
_WITH_PATH = "with_path"
_KEY = re.compile(r"\[[^\]]*\]|\.\w+")
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\[\d+\]")
_HOLDERS = (".value", ".raw_value")
"""What flax calls what holds an array; a path of its tree ends there or before."""
_UNNAMED, _NAMED = "_", "x"
"""An argument that a function does not use, and what it is called where it is used."""
_SPEC, _SHARDING = "PartitionSpec", "NamedSharding"


def like_weights_patch(
    files: Iterable[str], state: Sequence[InterfaceTensor], weights: Sequence[InterfaceTensor]
) -> str:
    """A diff that maps over optimizer state the function that chooses the specs of its weights by their shapes.

    Args:
        files: Where to look; the first one that maps a function over both counts.
        state: The optimizer state.
        weights: Its weights.
    """
    for file in files:
        tree = syntax_tree(file)
        mapped = [] if tree is None else list(_mapped_over_trees(tree))
        words = [{word for one in group for word in _WORD.findall(one.name)} for group in (state, weights)]
        shared = words[0] & words[1]
        of_state, of_weights = (
            [(node, text) for node, text, trees in mapped if trees & (own - shared) and not trees & (other - shared)]
            for own, other in (words, words[::-1])
        )
        if len(of_state) == 1 and len({text for _, text in of_weights}) == 1:
            node, text = of_state[0]
            if node.lineno == node.end_lineno and text != of_weights[0][1]:
                return replaced_all(file, {(node.lineno, node.col_offset, node.end_col_offset or 0): of_weights[0][1]})
    return ""


def _mapped_over_trees(tree: ast.Module) -> Iterator[tuple[ast.expr, str, frozenset[str]]]:
    """The functions that are mapped over trees without paths, as code, and the names of the trees."""
    for call in ast.walk(tree):
        name = name_of(call.func) if isinstance(call, ast.Call) else ""
        if isinstance(call, ast.Call) and name in _MAPS and not name.endswith(_WITH_PATH) and len(call.args) == 2:
            names = frozenset(filter(None, (name_of(call.args[1]), *_becomes(tree, call))))
            yield call.args[0], ast.unparse(call.args[0]), names


class _Chooser(NamedTuple):
    """What gives each array of a tree its spec: a function that a source maps over it, or `jax.device_put` of all.

    Attributes:
        function: The function, which returns specs by path or shape, or gives all arrays the same; None without one.
        path: The parameter that is the path of an array; empty if there is none.
        shape: The shape of an array as code in the function; empty if it does not get the array.
        trees: The names of the trees that it is mapped over, and of what these become.
        same: The spec that all arrays get, if they get the same: where it stands, its axes, and code for others.
        put: The code before and after the spec of each array, where there is no function.
    """

    function: ast.FunctionDef | ast.Lambda | None
    path: str
    shape: str
    trees: frozenset[str] = frozenset()
    same: tuple[ast.expr, Dims, Callable[[Dims], str]] | None = None
    put: tuple[str, str] = ("", "")

    def may_give(self, one: InterfaceTensor) -> bool:
        """Whether an input may have its sharding from here."""
        if self.same is None:
            return True
        return one.sharding is not None and without_end(dims_of(one.sharding)) == without_end(self.same[1])

    def is_named_for(self, one: InterfaceTensor) -> bool:
        """Whether the name of an input says that it is in a tree that this is mapped over."""
        return not self.trees.isdisjoint(_WORD.findall(one.name))


def helper_patch(files: Iterable[str], inputs: Sequence[InterfaceTensor], changed: Mapping[int, Dims]) -> str:
    """A diff that lets the function which chooses specs by path or shape return others for some inputs.

    Of several such functions, the one counts that is mapped over the tree of these inputs.

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
        found = [] if tree is None else _choosers(tree)
        if tree is None or not found:
            continue
        own = [one for one in inputs if one.index in changed]
        found = [one for one in found if all(map(one.may_give, own))]
        found = [one for one in found if all(map(one.is_named_for, own))] if len(found) > 1 else found
        if len(found) != 1:
            return ""
        (one,) = found
        rest = inputs if one.same is None else [other for other in inputs if one.may_give(other)]
        if one.same is not None and all(map(one.is_named_for, own)):
            rest = [other for other in rest if one.is_named_for(other)]
        conditions = _conditions(one, rest, changed)
        if not conditions:
            return ""
        return _patch(file, tree, one, conditions) if one.same is None else _same_patch(file, one, conditions)
    return ""


def _choosers(tree: ast.Module) -> list[_Chooser]:
    """What chooses the specs of trees in a file."""
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    found: dict[ast.AST, _Chooser] = {}
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or name_of(call.func) not in _MAPS or not call.args:
            continue
        mapped = functions.get(name_of(call.args[0])) or call.args[0]
        if not isinstance(mapped, ast.FunctionDef | ast.Lambda):
            continue
        given = [one.arg for one in mapped.args.args]
        has_path = name_of(call.func).endswith(_WITH_PATH)
        path, leaf = (given[0] if has_path and given else ""), next(iter(given[has_path : has_path + 1]), "")
        trees = frozenset(filter(None, (*map(name_of, call.args[1:2]), *_becomes(tree, call))))
        called = list(_called(mapped, functions, path, leaf))
        choosing = [one for one in called if (one[1] or one[2]) and any(map(_is_spec, _returned(one[0])))]
        for function, own_path, shape in choosing:
            one = found.setdefault(function, _Chooser(function, own_path, shape))
            found[function] = one._replace(trees=one.trees | trees)
        same = stated_in(mapped, tree) if not choosing else []
        if len(same) == 1 and leaf:
            one = found.setdefault(mapped, _Chooser(mapped, path, f"{leaf}.shape", same=same[0]))
            found[mapped] = one._replace(trees=one.trees | trees)
    inside = {node for function in found for node in ast.walk(function)}
    return [*found.values(), *(one for node in ast.walk(tree) if node not in inside for one in _put(tree, node))]


def _put(tree: ast.Module, node: ast.AST) -> Iterator[_Chooser]:
    """A call that puts a whole tree on devices with one spec."""
    match node:
        case ast.Call(func=ast.Attribute(value=jax, attr="device_put"), args=[put, spec]):
            names = frozenset(filter(None, (name_of(put), *_becomes(tree, node))))
            around = f"{ast.unparse(jax)}.tree.map(lambda {_NAMED}: ", f", {ast.unparse(put)})"
            for same in stated_in(spec, tree):
                if same[0] is spec:
                    yield _Chooser(None, "", f"{_NAMED}.shape", names, same, around)


def _becomes(tree: ast.Module, call: ast.Call) -> Iterator[str]:
    """The variables and arguments that get what a call makes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.keyword) and any(one is call for one in ast.walk(node.value)):
            yield from map(name_of, node.targets) if isinstance(node, ast.Assign) else [node.arg or ""]


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
    is_held = any(_path(one.name) != one.name for one in inputs if one.index in changed)  # paths may say that or not
    for one in inputs:
        for end in [end for end in wanted if (end in one.name if is_held else one.name.endswith(end))]:
            ends.setdefault(end, set()).add(changed.get(one.index))
        shapes.setdefault(one.shape, set()).add(changed.get(one.index))
    if chooser.path and "" not in wanted and all(len(ends[end]) == 1 for end in wanted):
        keystr = f"jax.tree_util.keystr({chooser.path})"
        alike = _by_dims({_quoted(end): new for end in sorted(wanted) for new in ends[end]})
        if is_held:
            return {" or ".join(f"{text} in {keystr}" for text in texts): new for new, texts in alike.items()}
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


def _same_patch(file: str, chooser: _Chooser, conditions: Mapping[str, Dims]) -> str:
    """A diff that gives some arrays another spec where a function gives all the same."""
    assert chooser.same is not None
    node, _, code = chooser.same
    if node.lineno != node.end_lineno:
        return ""
    cases = " else ".join(f"{code(dims)} if {condition}" for condition, dims in conditions.items())
    text = f"({cases} else {ast.unparse(node)})"
    given = [] if chooser.function is None else chooser.function.args.args
    unnamed = [one for one in given if one.arg == _UNNAMED and f"{_UNNAMED}.shape" in text]
    texts = {(one.lineno, one.col_offset, one.end_col_offset or 0): _NAMED for one in unnamed}
    if unnamed:
        text = text.replace(f"{_UNNAMED}.shape", f"{_NAMED}.shape")
    text = text.join(chooser.put)
    return replaced_all(file, {(node.lineno, node.col_offset, node.end_col_offset or 0): text, **texts})


def _quoted(text: str) -> str:
    return f'"{text}"' if "'" in text else repr(text)


def _patch(file: str, tree: ast.Module, chooser: _Chooser, conditions: Mapping[str, Dims]) -> str:
    """A diff with one more case for each condition at the beginning of a function."""
    function, lines = chooser.function, read_lines(file)
    assert isinstance(function, ast.FunctionDef)
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
