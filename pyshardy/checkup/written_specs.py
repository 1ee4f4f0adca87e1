"""The shardings that a user's source writes out, each with what it is for."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from pyshardy.core.axes import Dims
from pyshardy.core.intern import register_cache
from pyshardy.core.spec import format_spec
from pyshardy.report.rules import without_end
from pyshardy.source.syntax import SPECS, assigned, helpers_of, name_of

_SHARDING = "NamedSharding"
_MESHES = frozenset(("make_mesh", "Mesh", "AbstractMesh"))
_PARTITIONING = frozenset(("with_partitioning", "with_logical_partitioning"))
"""Functions of flax that take the axes as a tuple."""
_HANDED = "with_partitioning"
_MOST_DEEP = 2
"""The functions that axes are handed on through, from one to the next."""
_KEYWORDS = frozenset(("sharding", "sharding_names", "out_sharding"))
"""Arguments and entries in which flax takes the axes as a tuple."""
_JIT_KEYWORDS = frozenset(("in_shardings", "out_shardings"))
_WORD = re.compile(r"\w+")
_HOLDERS = frozenset(("value", "raw_value"))
"""How flax calls what holds an array; a source does not write it."""
_ENDINGS = ("_init", "_metadata")
"""What flax adds to the name of an array for the argument that says how it is made."""


class _Constant(NamedTuple):
    """A variable that is a spec, or a sharding of a mesh.

    Attributes:
        axes: Its axes.
        spec: How the file calls `PartitionSpec`.
        sharding: How it calls `NamedSharding`, for a sharding.
        mesh: The mesh as code; empty for a spec.
        made: The call of `PartitionSpec`; None if it must not change. It may if the variable is used once, besides
            shardings of a jitted function's arguments and results, which should change with it.
    """

    axes: Dims
    spec: str
    sharding: str
    mesh: str
    made: ast.Call | None = None

    def text(self, axes: Dims) -> str:
        """The same with other axes, as code."""
        spec = format_spec(axes, self.spec)
        return f"{self.sharding}({self.mesh}, {spec})" if self.mesh else spec


class Written(NamedTuple):
    """A spec in a source.

    Attributes:
        node: The call of `PartitionSpec` or of a function that hands its further arguments to it, the tuple, or the
            variable that is a spec.
        axes: Its axes.
        names: The keys, arguments and variables that it is for, the outermost first.
        patterns: The keys of a table of regular expressions that it is for.
        fixed: The number of arguments before the axes.
        constants: The variables of the file that are specs, of which another one may have the new axes.
    """

    node: ast.Call | ast.Tuple | ast.Name
    axes: Dims
    names: tuple[str, ...]
    patterns: tuple[str, ...]
    fixed: int = 0
    constants: Mapping[str, _Constant] = {}

    @property
    def range(self) -> tuple[int, int, int]:
        """The line, the first column and the column after the last."""
        return self.node.lineno, self.node.col_offset, self.node.end_col_offset or 0

    def text(self, new: Dims) -> str:
        """The spec with other axes, as code."""
        node = self.node
        if isinstance(node, ast.Name):
            own = self.constants[node.id]
            alike = (
                name
                for name, one in self.constants.items()
                if without_end(one.axes) == without_end(new) and one.mesh == own.mesh
            )
            return next(alike, own.text(new))
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            before = [ast.unparse(one) for one in node.args[: self.fixed]]
            axes = arguments_of(new)
            after = [ast.unparse(one) for one in node.keywords]
            return f"{name}({', '.join(filter(None, [*before, axes, *after]))})"
        entries = entries_of(new)
        length = max(len(node.elts), len(without_end(new)))
        return repr(tuple([*entries, *[None] * length][:length]))

    def fits(self, name: str) -> int:
        """How many parts of an input's name it is written for; 0 if not for the last one."""
        parts = [part for part in _WORD.findall(name) if not part.isdigit()]
        parts = parts[:-1] if len(parts) > 1 and parts[-1] in _HOLDERS else parts
        if any(_found(pattern, name) for pattern in self.patterns):
            return len(parts)
        own = {one.removesuffix(ending) for one in self.names for ending in ("", *_ENDINGS)}
        return sum(part in own for part in parts) if parts and parts[-1] in own else 0


def entries_of(axes: Dims) -> list[str | tuple[str, ...] | None]:
    """What a tuple of axes has for each dimension."""
    return [None if not one else one[0] if len(one) == 1 else one for one in axes]


def arguments_of(axes: Dims) -> str:
    """Axes as arguments, as of `P`.

    >>> arguments_of((("data",), (), ("x", "y")))
    "'data', None, ('x', 'y')"
    """
    return format_spec(axes)[len("P(") : -1]


def written_specs(tree: ast.Module, axes: Collection[str] = ()) -> list[Written]:
    """The specs that a file writes out, each with what it is for.

    Args:
        tree: The source.
        axes: Axes of the mesh; a tuple of these is a spec, wherever it stands.
    """
    return list(_specs(tree, (), (), _helpers(tree)._replace(axes=frozenset(axes))))


def stated_in(node: ast.AST, tree: ast.Module) -> list[tuple[ast.expr, Dims, Callable[[Dims], str]]]:
    """The specs and shardings in a part of a source, also by variables: their axes, and code for others.

    Args:
        node: The part.
        tree: The source.
    """
    constants = _helpers(tree).constants
    one = constants.get(node.id) if isinstance(node, ast.Name) else None
    if isinstance(node, ast.expr) and (one := one or _constant(node)) is not None:
        return [(node, one.axes, one.text)]
    return [found for child in ast.iter_child_nodes(node) for found in stated_in(child, tree)]


def written_on(tree: ast.Module, line: int) -> list[Written]:
    """The specs that one line writes whole.

    Args:
        tree: The source.
        line: The line.
    """
    known = _Helpers({}, {}, dict(_constants(tree)))
    return [one for one in _specs(tree, (), (), known) if (one.node.lineno, one.node.end_lineno) == (line, line)]


def handed_to_helpers(tree: ast.Module, line: int) -> Iterator[tuple[tuple[int, int], Dims]]:
    """The axes that calls on a line hand to helpers that constrain, as in `put(x, "data")`, with their columns.

    Args:
        tree: The source.
        line: The line.
    """
    helpers = {one.name: one.args for one in helpers_of(tree) if one.args.vararg and _unpacks(one, one.args.vararg.arg)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or (node.lineno, node.end_lineno) != (line, line):
            continue
        known = helpers.get(name_of(node.func))
        count = 0 if known is None else len(known.posonlyargs) + len(known.args)
        axes = _axes(node.args[count:]) if known is not None and 0 < count <= len(node.args) else None
        if axes is not None:
            first = node.args[count].col_offset if axes else node.args[-1].end_col_offset or 0
            yield (first, node.args[-1].end_col_offset or 0), axes


def _unpacks(helper: ast.FunctionDef | ast.Lambda, name: str, makers: Collection[str] = SPECS) -> bool:
    """Whether a function makes a spec of its further arguments, `P(*spec)`, or hands them to one that does."""
    calls = (node for node in ast.walk(helper) if isinstance(node, ast.Call) and name_of(node.func) in makers)
    return any(
        isinstance(one, ast.Starred) and isinstance(one.value, ast.Name) and one.value.id == name
        for call in calls
        for one in call.args
    )


def _found(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return False


class _Helpers(NamedTuple):
    """The functions of a file that are given axes.

    Attributes:
        makers: Those that make a spec of their last arguments, as `array(shape, *axes)`, with the number of arguments
            before these, and what the axes are of.
        takers: Those that hand an argument to flax as the axes, with its position and what it is the axes of.
        constants: The variables that are specs, with their axes.
        axes: Axes of which a tuple is a spec.
    """

    makers: Mapping[str, tuple[int, str]]
    takers: Mapping[str, tuple[int, str]]
    constants: Mapping[str, _Constant]
    axes: frozenset[str] = frozenset()


@lru_cache(maxsize=64)
def _helpers(tree: ast.Module) -> _Helpers:
    constraining = {one.name for one in helpers_of(tree)}
    functions: list[tuple[str, ast.FunctionDef | ast.Lambda]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name not in constraining:
            functions.append((node.name, node))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            functions.append((name_of(node.targets[0]), node.value))
    makers: dict[str, tuple[int, str]] = {}
    takers: dict[str, tuple[int, str]] = {}
    for name, one in [*functions] * _MOST_DEEP:
        rest = one.args.vararg.arg if one.args.vararg else ""
        handed = dict(_handed_to_flax(one))
        if rest and (rest in handed or _unpacks(one, rest, SPECS | makers.keys())):
            makers[name] = len(_names_of(one)), handed.get(rest, "")
        given = _names_of(one)
        for axes in [axes for axes in handed if axes in given]:
            takers[name] = given.index(axes), handed[axes]
    return _Helpers(makers, takers, dict(_constants(tree)))


register_cache(_helpers.cache_clear)


def _names_of(function: ast.FunctionDef | ast.Lambda) -> list[str]:
    return [one.arg for one in (*function.args.posonlyargs, *function.args.args)]


def _constants(tree: ast.Module) -> Iterator[tuple[str, _Constant]]:
    """The variables of a file that are specs, as `ROWS = P("model", None)`, each assigned once."""
    pairs = [pair for node in ast.walk(tree) if isinstance(node, ast.Assign) for pair in assigned(node)]
    count = Counter(target.id for target, _ in pairs if isinstance(target, ast.Name))
    for target, value in pairs:
        found = _constant(value) if isinstance(target, ast.Name) and count[target.id] == 1 else None
        if found is not None and isinstance(target, ast.Name):
            yield target.id, found if _is_for_a_jit(tree, target.id) else found._replace(made=None)


def _constant(value: ast.expr) -> _Constant | None:
    """A spec, or a sharding of a mesh, that is written out."""
    if not isinstance(value, ast.Call):
        return None
    is_sharding = name_of(value.func) == _SHARDING and len(value.args) == 2
    spec = value.args[1] if is_sharding else value
    if not isinstance(spec, ast.Call) or name_of(spec.func) not in SPECS:
        return None
    axes, mesh = _axes(spec.args), ast.unparse(value.args[0]) if is_sharding else ""
    return None if axes is None else _Constant(axes, ast.unparse(spec.func), ast.unparse(value.func), mesh, spec)


def _is_for_a_jit(tree: ast.Module, name: str) -> bool:
    """Whether a variable is used once, and else in shardings of arguments and results alone."""
    given = [one.value for one in ast.walk(tree) if isinstance(one, ast.keyword) and one.arg in _JIT_KEYWORDS]
    inside = sum(_uses(one, name) for one in given)
    return inside > 0 and _uses(tree, name) == inside + 1


def _uses(tree: ast.AST, name: str) -> int:
    names = (one for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load))
    return sum(one.id == name for one in names)


def _handed_to_flax(function: ast.FunctionDef | ast.Lambda) -> Iterator[tuple[str, str]]:
    """The variables that a function hands to flax as axes, each with the argument that gets the initializer, if any."""
    words = [node for node in ast.walk(function) if isinstance(node, ast.keyword)]
    of = {id(node.value): node.arg or "" for node in words}
    variables = {node.value.id: node.arg or "" for node in words if isinstance(node.value, ast.Name)}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and name_of(node.targets[0]) in variables:
            of[id(node.value)] = variables[name_of(node.targets[0])]
    for call in ast.walk(function):
        if isinstance(call, ast.Call) and name_of(call.func) in _PARTITIONING:
            yield from ((one.id, of.get(id(call), "")) for one in call.args[1:2] if isinstance(one, ast.Name))


def _specs(node: ast.AST, names: tuple[str, ...], patterns: tuple[str, ...], helpers: _Helpers) -> Iterator[Written]:
    """The specs under a part of a source, each with what it is for."""
    fixed, of = helpers.makers.get(name_of(node.func), (-1, "")) if isinstance(node, ast.Call) else (-1, "")
    if isinstance(node, ast.Call) and 0 <= fixed <= len(node.args):
        axes = _axes(node.args[fixed:])
        if axes is not None:
            texts = [
                one.value for one in node.args[:fixed] if isinstance(one, ast.Constant) and isinstance(one.value, str)
            ]
            named = [str(one.value.value) for one in node.keywords if isinstance(one.value, ast.Constant)]
            yield Written(node, axes, (*names, *texts, *named, of) if of else (*names, *texts), patterns, fixed)
            return
    if isinstance(node, ast.Name) and node.id in helpers.constants and names:
        constant = helpers.constants[node.id]
        yield Written(constant.made or node, constant.axes, names, patterns, 0, helpers.constants)
        return
    is_call = isinstance(node, ast.Call) and name_of(node.func) in SPECS
    is_tuple = isinstance(node, ast.Tuple) and bool(
        patterns or (names and names[-1] in _PARTITIONING | _KEYWORDS) or _is_of(node, helpers.axes)
    )
    if (is_call or is_tuple) and isinstance(node, (ast.Call, ast.Tuple)):
        axes = _axes(node.args if isinstance(node, ast.Call) else node.elts)
        if axes is not None:
            yield Written(node, axes, names, patterns)
        return
    for child, more, keys in _children(node, helpers):
        yield from _specs(child, (*names, *more), (*patterns, *keys), helpers)


def _is_of(node: ast.Tuple, axes: frozenset[str]) -> bool:
    """Whether a tuple has axes of the mesh alone, and nothing for other dimensions."""
    found = _axes(node.elts)
    return found is not None and any(found) and all(axis in axes for names in found for axis in names)


def _children(node: ast.AST, helpers: _Helpers) -> Iterator[tuple[ast.AST, tuple[str, ...], tuple[str, ...]]]:
    """The parts of a piece of source, each with the names and the patterns that it is for beside those of the whole."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values):
            yield value, (str(key.value),) if isinstance(key, ast.Constant) else (), ()
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        key = node.targets[0].slice
        text = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""
        yield node.value, (text,), (text,) if text else ()
    elif isinstance(node, ast.Assign):
        yield node.value, tuple(filter(None, map(name_of, node.targets))), ()
    elif isinstance(node, ast.Call) and name_of(node.func) in _MESHES:
        return
    elif isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name):  # dense(...)(x).reshape(...)
            yield node.func, (), ()
        named = [one.value for one in node.keywords if one.arg == "name"]
        own = tuple(str(one.value) for one in named if isinstance(one, ast.Constant))
        taken, of = helpers.takers.get(name_of(node.func), (-1, ""))
        if taken >= 0:
            own += tuple(one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str))
        for place, argument in enumerate(node.args):
            yield argument, (*own, name_of(node.func), *((of, _HANDED) if place == taken else ())), ()
        for word in node.keywords:
            yield word.value, (*own, *filter(None, [word.arg])), ()
    else:
        for child in ast.iter_child_nodes(node):
            yield child, (), ()


def _axes(entries: list[ast.expr]) -> Dims | None:
    """The axes of a spec; None if they are not written out."""
    try:
        dims = [ast.literal_eval(one) for one in entries]
        return tuple(() if dim is None else (dim,) if isinstance(dim, str) else tuple(dim) for dim in dims)
    except (ValueError, TypeError):
        return None
