"""The variables and functions of a user's source that stand for specs."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from pyshardy.core.axes import Dims
from pyshardy.core.intern import register_cache
from pyshardy.core.spec import format_spec
from pyshardy.source.constraining import SPECS, helpers_of
from pyshardy.source.meanings import assigned, is_literal, literal, name_of, value_of

_SHARDING = "NamedSharding"
PARTITIONING = frozenset(("with_partitioning", "with_logical_partitioning"))
"""Functions of flax that take the axes as a tuple."""
_MOST_DEEP = 2
"""The functions that axes are handed on through, from one to the next."""
_KEYWORD = "sharding"
_JIT_KEYWORDS = frozenset(("in_shardings", "out_shardings"))


class Constant(NamedTuple):
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


class Template(NamedTuple):
    """A function that makes a spec of several of its parameters.

    Attributes:
        names: Its parameters that may be given by position.
        defaults: What parameters are if they are not given.
        entries: The spec: parameters and constants.
        of: The argument that gets what the spec is for, if any.
    """

    names: list[str]
    defaults: Mapping[str, ast.expr]
    entries: tuple[ast.expr, ...]
    of: str

    def entries_of(self, call: ast.Call) -> list[ast.expr] | None:
        """The spec that a call makes; None if its arguments do not say."""
        if any(isinstance(one, ast.Starred) for one in call.args) or any(word.arg is None for word in call.keywords):
            return None
        given = {**self.defaults, **dict(zip(self.names, call.args))}
        given |= {word.arg: word.value for word in call.keywords if word.arg is not None}
        found = [given.get(one.id) if isinstance(one, ast.Name) else one for one in self.entries]
        return None if any(one is None for one in found) else [one for one in found if one is not None]

    def is_given(self, number: int, call: ast.Call) -> bool:
        """Whether an entry is an argument that a call writes."""
        one = self.entries[number]
        if not isinstance(one, ast.Name):
            return False
        return one.id in self.names[: len(call.args)] or any(word.arg == one.id for word in call.keywords)


class SpecHelpers(NamedTuple):
    """The functions of a file that are given axes.

    Attributes:
        makers: Those that make a spec of their last arguments, as `array(shape, *axes)`, with the number of arguments
            before these, and what the axes are of.
        takers: Those that hand an argument to flax as the axes, with its position and what it is the axes of.
        constants: The variables that are specs, with their axes.
        templates: Those that make a spec of several arguments, as `dense(features, rows, columns)`.
        axes: Axes of which a tuple is a spec.
        own: Those that have one spec of their own, as `rows(*shape)` that gives all arrays the sharding of a batch.
    """

    makers: Mapping[str, tuple[int, str]]
    takers: Mapping[str, tuple[int, str]]
    constants: Mapping[str, Constant]
    templates: Mapping[str, Template] = {}
    axes: frozenset[str] = frozenset()
    own: Mapping[str, tuple[ast.Call, Dims]] = {}


Makers = frozenset[tuple[str, int, str]]
"""The names of makers, each with the number of arguments before the axes, and what the axes are of."""


def makers_in(trees: Sequence[ast.Module]) -> Makers:
    """The functions of several files that make a spec of their last arguments, also through those of other files.

    Args:
        trees: The sources.
    """
    found: Makers = frozenset()
    for _ in range(_MOST_DEEP):
        found = frozenset((name, *one) for tree in trees for name, one in helpers_in(tree, found).makers.items())
    return found


@lru_cache(maxsize=64)
def helpers_in(tree: ast.Module, known: Makers = frozenset()) -> SpecHelpers:
    """The functions and variables of a file that stand for specs.

    Args:
        tree: The source.
        known: Makers of other files.
    """
    constraining = {one.name for one in helpers_of(tree)}
    functions: list[tuple[str, ast.FunctionDef | ast.Lambda]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name not in constraining:
            functions.append((node.name, node))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            functions.append((name_of(node.targets[0]), node.value))
    makers = {name: (count, of) for name, count, of in known}
    takers: dict[str, tuple[int, str]] = {}
    for name, one in [*functions] * _MOST_DEEP:
        rest = one.args.vararg.arg if one.args.vararg else ""
        handed = dict(_handed_to_flax(one))
        if rest and (rest in handed or _is_metadata(one, rest) or unpacks(one, rest, SPECS | makers.keys())):
            makers[name] = len(names_of(one)), handed.get(rest, "")
        given = names_of(one)
        for axes in [axes for axes in handed if axes in given]:
            takers[name] = given.index(axes), handed[axes]
    templates: dict[str, Template] = {}
    for name, one in [*functions] * _MOST_DEEP:
        if name not in makers and name not in takers and (found := _template(one, templates)) is not None:
            templates[name] = found
    taken = makers.keys() | takers.keys() | templates.keys()
    own = {name: spec for name, one in functions if name not in taken and (spec := _own_spec(tree, one)) is not None}
    return SpecHelpers(makers, takers, dict(constants_in(tree)), templates, own=own)


register_cache(helpers_in.cache_clear)


def _template(function: ast.FunctionDef | ast.Lambda, known: Mapping[str, Template]) -> Template | None:
    """The longest spec that a function makes of its parameters, each at most once; None if it makes none."""
    given = [*names_of(function), *(one.arg for one in function.args.kwonlyargs)]
    handed = {id(node.value): node.arg or "" for node in ast.walk(function) if isinstance(node, ast.keyword)}
    found: list[Template] = []
    for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
        name, entries = name_of(call.func), None
        if name in SPECS:
            entries = call.args
        elif name in PARTITIONING and len(call.args) > 1 and isinstance(call.args[1], ast.Tuple):
            entries = call.args[1].elts
        elif name in known:
            entries = known[name].entries_of(call)
        names = [one.id for one in entries or () if isinstance(one, ast.Name)]
        is_own = bool(names) and len(set(names)) == len(names) and all(one in given for one in names)
        if entries is not None and is_own and all(isinstance(one, ast.Name | ast.Constant) for one in entries):
            found.append(Template(names_of(function), _defaults(function), tuple(entries), handed.get(id(call), "")))
    return max(found, key=lambda one: len(one.entries), default=None)


def _defaults(function: ast.FunctionDef | ast.Lambda) -> dict[str, ast.expr]:
    names, args = names_of(function), function.args
    found = dict(zip(names[len(names) - len(args.defaults) :], args.defaults))
    return found | {one.arg: value for one, value in zip(args.kwonlyargs, args.kw_defaults) if value is not None}


def names_of(function: ast.FunctionDef | ast.Lambda) -> list[str]:
    """The parameters that a call may give by position; that of a method without `self`."""
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if names[:1] == ["self"] else names


def constants_in(tree: ast.Module) -> Iterator[tuple[str, Constant]]:
    """The variables of a file that are specs, as `ROWS = P("model", None)`, each assigned once."""
    pairs = [pair for node in ast.walk(tree) if isinstance(node, ast.Assign) for pair in assigned(node)]
    count = Counter(target.id for target, _ in pairs if isinstance(target, ast.Name))
    for target, value in pairs:
        found = constant_of(value) if isinstance(target, ast.Name) and count[target.id] == 1 else None
        if found is not None and isinstance(target, ast.Name):
            yield target.id, found if _is_for_a_jit(tree, target.id) else found._replace(made=None)


def constant_of(value: ast.expr | None) -> Constant | None:
    """A spec, or a sharding of a mesh, that is written out."""
    if not isinstance(value, ast.Call):
        return None
    is_sharding = name_of(value.func) == _SHARDING and len(value.args) == 2
    spec = value.args[1] if is_sharding else value
    if not isinstance(spec, ast.Call) or name_of(spec.func) not in SPECS:
        return None
    axes, mesh = axes_of_entries(spec.args), ast.unparse(value.args[0]) if is_sharding else ""
    return None if axes is None else Constant(axes, ast.unparse(spec.func), ast.unparse(value.func), mesh, spec)


def _own_spec(tree: ast.Module, function: ast.FunctionDef | ast.Lambda) -> tuple[ast.Call, Dims] | None:
    """The only spec in a function that makes arrays, or the variable that is one and is used nowhere else."""
    words = [node for node in ast.walk(function) if isinstance(node, ast.keyword) and node.arg == _KEYWORD]
    if len(words) != 1:
        return None
    value = words[0].value
    is_its_own = isinstance(value, ast.Name) and _uses(tree, value.id) == 1
    found = constant_of(value_of(tree, value.id) if isinstance(value, ast.Name) and is_its_own else value)
    return None if found is None or found.made is None else (found.made, found.axes)


def _is_for_a_jit(tree: ast.Module, name: str) -> bool:
    """Whether a variable is used once, and else in shardings of arguments and results alone."""
    given = [one.value for one in ast.walk(tree) if isinstance(one, ast.keyword) and one.arg in _JIT_KEYWORDS]
    inside = sum(_uses(one, name) for one in given)
    return inside > 0 and _uses(tree, name) == inside + 1


def _uses(tree: ast.AST, name: str) -> int:
    names = (one for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load))
    return sum(one.id == name for one in names)


def _is_metadata(function: ast.FunctionDef | ast.Lambda, name: str) -> bool:
    """Whether a function hands a variable on under a name, as `nnx.Param(value, spec=spec)` of a user's own kind."""
    words = (node.value for node in ast.walk(function) if isinstance(node, ast.keyword) and node.arg is not None)
    return any(isinstance(one, ast.Name) and one.id == name for one in words)


def _handed_to_flax(function: ast.FunctionDef | ast.Lambda) -> Iterator[tuple[str, str]]:
    """The variables that a function hands to flax as axes, each with the argument that gets the initializer, if any."""
    words = [node for node in ast.walk(function) if isinstance(node, ast.keyword)]
    of = {id(node.value): node.arg or "" for node in words}
    variables = {node.value.id: node.arg or "" for node in words if isinstance(node.value, ast.Name)}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and name_of(node.targets[0]) in variables:
            of[id(node.value)] = variables[name_of(node.targets[0])]
    for call in ast.walk(function):
        if isinstance(call, ast.Call) and name_of(call.func) in PARTITIONING:
            yield from ((one.id, of.get(id(call), "")) for one in call.args[1:2] if isinstance(one, ast.Name))


def unpacks(helper: ast.AST, name: str, makers: Collection[str] = SPECS) -> bool:
    """Whether code makes a spec of a variable, `P(*spec)` or `P(*[RULES[one] for one in spec])`, or hands it on.

    Args:
        helper: The code, such as a function.
        name: The variable.
        makers: What makes a spec of its arguments.
    """
    calls = (node for node in ast.walk(helper) if isinstance(node, ast.Call) and name_of(node.func) in makers)
    return any(isinstance(one, ast.Starred) and _is_of_each(one.value, name) for call in calls for one in call.args)


def _is_of_each(node: ast.expr, name: str) -> bool:
    """Whether code is a variable, or has an entry for each of its entries."""
    if isinstance(node, ast.GeneratorExp | ast.ListComp):
        node = node.generators[0].iter
    return isinstance(node, ast.Name) and node.id == name


def axes_of_entries(entries: Sequence[ast.expr]) -> Dims | None:
    """The axes of a spec, or the names of dimensions, by its entries; None if they are not written out."""
    return axes_in(ast.Tuple([*entries], ast.Load()))


def axes_in(spec: ast.expr) -> Dims | None:
    """The same by an expression that is a tuple of them."""
    value = literal(spec) if is_literal(spec) else None
    if not isinstance(value, tuple):
        return None
    given = [() if dim is None else dim if isinstance(dim, tuple) else (dim,) for dim in value]
    names = [tuple(one for one in axes if isinstance(one, str)) for axes in given]
    return tuple(names) if [*map(len, names)] == [*map(len, given)] else None
