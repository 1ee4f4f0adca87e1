"""The shardings of a program's outputs and arguments as code: the trees that `jax.jit` takes."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyshardy.checkup.patching.source import JitCall, function_of, jit_call, leaves_open, replaced_all, user_files
from pyshardy.checkup.program.families import dims_of
from pyshardy.checkup.program.ties import ties_in
from pyshardy.core.axes import Dims
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.spec import format_spec
from pyshardy.frontend.interface import input_tensors, output_tensors
from pyshardy.ir.module import Module
from pyshardy.report.patch import mesh_variable, name_of_class
from pyshardy.report.rules import without_end
from pyshardy.source.meanings import name_of
from pyshardy.source.syntax import syntax_tree

_NAME = re.compile(r"(\w+)((?:\[\d+\]|\['[^']*'\]|\.\w+)*)")
_PART = re.compile(r"\[(?:(\d+)|'([^']*)')\]|(\.\w+)")
_RESULT = "result"
_NONE = "None"
_SHARDING = "NamedSharding"
_LIST, _TUPLE = "[", "("
_MOST_STEPS = 4
"""The names and functions that are followed to the list or the tuple that a name stands for."""

_Path = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class _Leaf:
    """An output: its path, its sharding as code, and the argument that it replaces, if any, by its head and its path.

    If the output should have the sharding of that argument, `given` is the entry of `in_shardings` for it, as code. An
    output that is changed gets another sharding than it has.
    """

    path: _Path
    text: str
    argument: tuple[str, _Path] | None = None
    given: str = ""
    is_changed: bool = True


def outputs_patch(module: Module, changed: Mapping[int, TensorSharding]) -> str:
    """A diff of `out_shardings` in the user's source; other outputs keep those that they have.

    Args:
        module: The program.
        changed: The new shardings of outputs by their number.
    """
    outputs, found = {}, output_tensors(module.root)
    for one in found:
        sharding = changed.get(one.index, one.sharding)
        if sharding is not None and not all(axis.is_full for axes in sharding.dim_axes for axis in axes):
            return ""
        outputs[one.name] = None if sharding is None else without_end(dims_of(sharding))
    inputs, files = input_tensors(module.root), user_files(module.root)
    ties = ties_in(module, inputs, found)
    replaced = {found[result].name: inputs[place].name for place, result in ties.items()}
    given = {one.name: None if one.sharding is None else without_end(dims_of(one.sharding)) for one in inputs}
    alike = [name for name, argument in replaced.items() if outputs[name] == given[argument]]
    new = [one.name for one in found if one.index in changed]
    return returned_patch(jit_call(files, function_of(module)), outputs, replaced, files, alike, new)


def returned_patch(
    call: JitCall | None,
    outputs: Mapping[str, Dims | None],
    replaced: Mapping[str, str] | None = None,
    files: Sequence[str] = (),
    as_given: Collection[str] = (),
    changed: Collection[str] | None = None,
) -> str:
    """A diff that gives the `jax.jit` of a function shardings of its outputs.

    Args:
        call: Where the function is jitted; None if that is unknown.
        outputs: The axes of each output by its name; None for one that JAX may shard as it likes.
        replaced: The names of arguments by those of the outputs that replace them.
        files: The user's files, which say what is a list and what a tuple: names do not.
        as_given: The outputs that are to be sharded as the arguments that they replace.
        changed: The outputs that get another sharding; by default all. Of a tuple only their entries are written anew.

    Returns:
        The diff; empty where the outputs are other trees than tuples, lists and dictionaries, where it is not known
        which of them, or where equinox jits the function.
    """
    tree = syntax_tree(call.file) if call is not None else None
    if call is None or tree is None or call.is_equinox:
        return ""
    text, leaves = _writer(tree, call.line), []
    for name, axes in outputs.items():
        found = _parsed(name)
        if found is None or found[0] != _RESULT:
            return ""
        argument = _parsed((replaced or {}).get(name, ""))
        node = call.ins.get(argument[0]) if argument is not None and name in as_given else None
        given = "" if node is None else ast.unparse(node)
        leaves.append(_Leaf(found[1], text(axes), argument, given, changed is None or name in changed))
    trees = [tree for file in files if (tree := syntax_tree(file)) is not None]
    if isinstance(call.out, ast.Tuple) and (entries := _entries(call.out, leaves)):
        return _entries_patch(call.file, entries, trees)
    code = _tree(leaves, 0, trees)
    return call.out_patch(code) if code else ""


def _entries(out: ast.Tuple, leaves: Sequence[_Leaf]) -> list[tuple[ast.expr, list[_Leaf]]]:
    """The entries of a tuple, each with its outputs; empty if these are another tree."""
    found: dict[int | str, list[_Leaf]] = {}
    for leaf in leaves:
        found.setdefault(leaf.path[0] if leaf.path else "", []).append(leaf)
    is_same = list(found) == list(range(len(out.elts))) and not any(isinstance(one, ast.Starred) for one in out.elts)
    return list(zip(out.elts, found.values())) if is_same else []


def _entries_patch(file: str, entries: Sequence[tuple[ast.expr, Sequence[_Leaf]]], trees: Sequence[ast.Module]) -> str:
    """A diff of the entries with an output that gets another sharding; an entry that has the same is used again."""
    kept = {
        shape: ast.unparse(node)
        for node, leaves in entries
        if not any(leaf.is_changed for leaf in leaves) and (shape := _shape(leaves)) and not leaves_open(node)
    }
    texts: dict[tuple[int, int, int], str] = {}
    for node, leaves in entries:
        if any(leaf.is_changed for leaf in leaves):
            code = kept.get(_shape(leaves)) or _tree(leaves, 1, trees)
            if not code or node.lineno != node.end_lineno:
                return ""
            texts[node.lineno, node.col_offset, node.end_col_offset or 0] = code
    return replaced_all(file, texts)


def _shape(leaves: Sequence[_Leaf]) -> tuple[tuple[_Path, str], ...]:
    """The paths below an entry and their shardings; empty if some are left to JAX."""
    return () if any(leaf.text == _NONE for leaf in leaves) else tuple((leaf.path[1:], leaf.text) for leaf in leaves)


def given_patch(call: JitCall, arguments: Mapping[str, Dims | None], files: Sequence[str] = ()) -> str:
    """A diff that gives the `jax.jit` of a function other shardings of arguments.

    Args:
        call: Where the function is jitted.
        arguments: The axes of all arrays of these arguments by their names.
        files: The user's files, which say what is a list and what a tuple.

    Returns:
        The diff; empty unless each argument has an entry of `in_shardings` that is one spec for all of its arrays.
    """
    tree = syntax_tree(call.file)
    if tree is None:
        return ""
    text, heads = _writer(tree, call.line), dict[str, list[_Leaf]]()
    for name, axes in arguments.items():
        found = _parsed(name)
        if found is None or axes is None:
            return ""
        heads.setdefault(found[0], []).append(_Leaf(found[1], text(axes), found))
    trees = [tree for file in files if (tree := syntax_tree(file)) is not None]
    texts: dict[tuple[int, int, int], str] = {}
    for head, leaves in heads.items():
        node, code = call.ins.get(head), _tree(leaves, 0, trees)
        if node is None or not code or node.lineno != node.end_lineno or not call.is_spec(head):
            return ""
        texts[node.lineno, node.col_offset, node.end_col_offset or 0] = code
    return replaced_all(call.file, texts)


def _writer(tree: ast.Module, line: int) -> Callable[[Dims | None], str]:
    """How a file writes the sharding of some axes on a line."""
    mesh = mesh_variable(tree) or _mesh_around(tree, line)
    spec, sharding = (name_of_class(tree, name) for name in ("PartitionSpec", _SHARDING))

    def text(axes: Dims | None) -> str:
        if axes is None:
            return _NONE
        return f"{sharding}({mesh}, {format_spec(axes, spec)})" if mesh else format_spec(axes, spec)

    return text


def _mesh_around(tree: ast.Module, line: int) -> str:
    """The mesh of all shardings that the function around a line writes, as `self.mesh`; empty if it is not sure."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    around = [node for node in functions if node.lineno <= line <= (node.end_lineno or 0)]
    inner = max(around, key=lambda node: node.lineno, default=None)
    calls = [node for node in ast.walk(inner) if isinstance(node, ast.Call)] if inner is not None else []
    meshes = {ast.unparse(one.args[0]) for one in calls if name_of(one.func) == _SHARDING and len(one.args) == 2}
    return meshes.pop() if len(meshes) == 1 else ""


def _parsed(name: str) -> tuple[str, _Path] | None:
    """The head and the path of a name; None for one with a key of another kind.

    >>> _parsed("params['layers'][0]['up']"), _parsed("state.params")
    (('params', ('layers', 0, 'up')), ('state', ('.params',)))
    """
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    parts = _PART.findall(found[2])
    return found[1], tuple(int(number) if number else attribute or key for number, key, attribute in parts)


def _tree(leaves: Sequence[_Leaf], depth: int, trees: Sequence[ast.Module]) -> str:
    """A tree of outputs as code; equal shardings are written once. Empty if it cannot be written.

    >>> _tree([_Leaf((0, "v"), "a"), _Leaf((0, "w"), "b"), _Leaf((1,), "None")], 0, [])
    "({'v': a, 'w': b}, None)"
    """
    if leaves[0].given and all(leaf.given == leaves[0].given and _is_same(leaf, depth) for leaf in leaves):
        return leaves[0].given
    if len({leaf.text for leaf in leaves}) == 1:
        return leaves[0].text
    branches: dict[int | str, list[_Leaf]] = {}
    for leaf in leaves:
        if len(leaf.path) <= depth:
            return ""
        branches.setdefault(leaf.path[depth], []).append(leaf)
    inner = {key: _tree(branch, depth + 1, trees) for key, branch in branches.items()}
    if not all(inner.values()):
        return ""
    if any(isinstance(key, str) and key.startswith(".") for key in inner):
        return ""
    if all(isinstance(key, str) for key in inner):
        return "{" + ", ".join(f"{key!r}: {text}" for key, text in inner.items()) + "}"
    if list(inner) != list(range(len(inner))):
        return ""
    name, texts = _sequence_name(leaves, depth), list(inner.values())
    opening = _opening(trees, name) if name else "" if depth else _TUPLE
    if opening == _LIST:
        alike = len(texts) > 1 and len(set(texts)) == 1
        return f"[{texts[0]}] * {len(texts)}" if alike else f"[{', '.join(texts)}]"
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})" if opening else ""


def _is_same(leaf: _Leaf, depth: int) -> bool:
    """Whether what follows in the path of an output is the whole path in the argument that it replaces."""
    return leaf.argument is not None and leaf.argument[1] == leaf.path[depth:]


def _sequence_name(leaves: Sequence[_Leaf], depth: int) -> str:
    """What the user's source calls a list or tuple of outputs: its key, or the argument that it replaces; may be empty.

    >>> _sequence_name([_Leaf((0, 3, "up"), "", ("params", (3, "up")))], 1)
    'params'
    """
    first = leaves[0]
    head, path, rest = _RESULT, first.path[:depth], first.path[depth:]
    if first.argument is not None and first.argument[1][-len(rest) :] == rest:
        head, path = first.argument[0], first.argument[1][: -len(rest)]
    last = path[-1] if path else "" if head == _RESULT else head
    return last.removeprefix(".") if isinstance(last, str) else ""


def _opening(trees: Sequence[ast.Module], name: str, steps: int = _MOST_STEPS) -> str:
    """The bracket that opens what a name stands for; empty if the source does not say, or says several things."""
    found = {opening for tree in trees for value in _values(tree, name) if (opening := _opens(trees, value, steps))}
    return found.pop() if len(found) == 1 else ""


def _values(tree: ast.Module, name: str) -> Iterator[ast.expr]:
    """What a file assigns to a name, gives to an argument or stores under a key of this name, or returns from it."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets, value=value) if any(name_of(target) == name for target in targets):
                yield value
            case ast.AnnAssign(target=target, value=ast.expr() as value) if name_of(target) == name:
                yield value
            case ast.keyword(arg=given, value=value) if given == name:
                yield value
            case ast.Dict(keys=keys, values=values):
                yield from (
                    one for key, one in zip(keys, values) if isinstance(key, ast.Constant) and key.value == name
                )
            case ast.FunctionDef(name=function) if function == name:
                returned = (one.value for one in ast.walk(node) if isinstance(one, ast.Return))
                yield from (one for one in returned if one is not None)


def _opens(trees: Sequence[ast.Module], value: ast.expr, steps: int) -> str:
    """The bracket of an expression; empty for one that does not say whether it is a list or a tuple."""
    if isinstance(value, ast.List | ast.ListComp):
        return _LIST
    if isinstance(value, ast.Tuple):
        return _TUPLE
    if isinstance(value, ast.BinOp):
        return _opens(trees, value.left, steps) or _opens(trees, value.right, steps)
    if not steps:
        return ""
    if isinstance(value, ast.Name):
        return _opening(trees, value.id, steps - 1)
    if isinstance(value, ast.Call):
        call = value.func
        made = {"list": _LIST, "tuple": _TUPLE}.get(name_of(call), "")
        inner = call.args[0] if isinstance(call, ast.Call) and call.args else call  # jax.jit(init)(key) returns as init
        return made or _opening(trees, name_of(inner), steps - 1)
    return ""
