"""The shardings that a user's source writes out, each with what it is for."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import NamedTuple

from pyshardy.checkup.patching.spec_helpers import (
    PARTITIONING,
    Constant,
    Makers,
    SpecHelpers,
    Template,
    axes_in,
    axes_of_entries,
    constant_of,
    constants_in,
    helpers_in,
    names_of,
    unpacks,
)
from pyshardy.core.axes import Dims
from pyshardy.report.rules import without_end
from pyshardy.source.constraining import SPECS, constraining_calls, helpers_known_in
from pyshardy.source.meanings import name_of
from pyshardy.source.syntax import syntax_tree

_MESHES = frozenset(("make_mesh", "Mesh", "AbstractMesh"))
_HANDED = "with_partitioning"
_KEYWORDS = frozenset(("sharding", "sharding_names", "out_sharding"))
"""Arguments and entries in which flax takes the axes as a tuple."""
_WORD = re.compile(r"\w+")
_HOLDERS = frozenset(("value", "raw_value"))
"""How flax calls what holds an array; a source does not write it."""
_ENDINGS = ("_init", "_metadata")
"""What flax adds to the name of an array for the argument that says how it is made."""


class Written(NamedTuple):
    """A spec in a source.

    Attributes:
        node: The call of `PartitionSpec` or of a function that hands its arguments to it, the tuple, or the variable
            that is a spec.
        axes: Its axes.
        names: The keys, arguments and variables that it is for, the outermost first.
        patterns: The keys of a table of regular expressions that it is for.
        fixed: The number of arguments before the axes.
        constants: The variables of the file that are specs, of which another one may have the new axes.
        template: The function that is called, if it makes the spec of several arguments.
        is_shared: Whether it stands in a function, and is for all that calls of the function make.
    """

    node: ast.Call | ast.Tuple | ast.Name
    axes: Dims
    names: tuple[str, ...]
    patterns: tuple[str, ...]
    fixed: int = 0
    constants: Mapping[str, Constant] = {}
    template: Template | None = None
    is_shared: bool = False

    def parts(self, new: Dims) -> dict[ast.expr, str]:
        """What to replace for other axes, with the new code; nothing if the call of a function cannot say them."""
        if self.template is None or not isinstance(self.node, ast.Call):
            return {self.node: self._text(new)}
        found = {}
        given = self.template.entries_of(self.node) or []
        rank = len(given)
        old, wanted = ([*axes, *[()] * rank] for axes in (self.axes, new))
        for number, (one, was, now) in enumerate(zip(given, old, wanted)):
            if was != now and not self.template.is_given(number, self.node):
                return {}
            if was != now:
                found[one] = repr(*entries_of((now,)))
        return {} if any(new[rank:]) else found

    def _text(self, new: Dims) -> str:
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
            axes = _codes(node.args[self.fixed :], self.axes, without_end(new))
            after = [ast.unparse(one) for one in node.keywords]
            return f"{name}({', '.join([*before, *axes, *after])})"
        return _as_tuple(node.elts, self.axes, new)

    def fits(self, name: str) -> int:
        """How many parts of an input's name it is written for; 0 if not for the last one."""
        parts = parts_of(name)
        if any(_found(pattern, name) for pattern in self.patterns):
            return len(parts)
        own = {one.removesuffix(ending) for one in self.names for ending in ("", *_ENDINGS)}
        return sum(part in own for part in parts) if parts and parts[-1] in own else 0


def parts_of(name: str) -> list[str]:
    """The parts of an input's name that a source may write: without numbers, and without what holds the array.

    >>> parts_of("params['layers'][0]['up'].value")
    ['params', 'layers', 'up']
    """
    parts = [part for part in _WORD.findall(name) if not part.isdigit()]
    return parts[:-1] if len(parts) > 1 and parts[-1] in _HOLDERS else parts


def entries_of(axes: Dims) -> list[str | tuple[str, ...] | None]:
    """What a tuple of axes has for each dimension."""
    return [None if not one else one[0] if len(one) == 1 else one for one in axes]


def written_specs(tree: ast.Module, axes: Collection[str] = (), makers: Makers = frozenset()) -> list[Written]:
    """The specs that a file writes out, each with what it is for.

    Args:
        tree: The source.
        axes: Axes of the mesh; a tuple of these is a spec, wherever it stands.
        makers: The functions of other files that make specs.
    """
    return list(_specs(tree, (), (), helpers_in(tree, makers)._replace(axes=frozenset(axes))))


def stated_in(node: ast.AST, tree: ast.Module) -> list[tuple[ast.expr, Dims, Callable[[Dims], str]]]:
    """The specs and shardings in a part of a source, also by variables: their axes, and code for others.

    Args:
        node: The part.
        tree: The source.
    """
    constants = helpers_in(tree).constants
    one = constants.get(node.id) if isinstance(node, ast.Name) else None
    if isinstance(node, ast.expr) and (one := one or constant_of(node)) is not None:
        return [(node, one.axes, one.text)]
    return [found for child in ast.iter_child_nodes(node) for found in stated_in(child, tree)]


def written_on(file: str, line: int) -> list[Written]:
    """The specs that the call which constrains on a line writes; if it has none, or several, those on the line.

    Args:
        file: The source.
        line: The line.
    """
    tree, calls = syntax_tree(file), constraining_calls(file, line)
    if tree is None:
        return []
    given = [one for call in calls for one in (*call.args[1:], *(word.value for word in call.keywords))]
    inside = {node for one in given for node in ast.walk(one)}
    found = _specs(tree, (), (), SpecHelpers(helpers_in(tree).makers, {}, dict(constants_in(tree))))
    if len(calls) == 1:
        return [one for one in found if one.node in inside]
    return [one for one in found if (one.node.lineno, one.node.end_lineno) == (line, line)]


def handed_to_helpers(file: str, line: int) -> Iterator[tuple[tuple[int, int, int], Dims, Callable[[Dims], str]]]:
    """The axes that calls on a line hand to helpers that constrain, as in `put(x, "data")`.

    Each comes with its line, its first column and the one behind it, and a function that makes the code of others.

    Args:
        file: The source.
        line: The line.
    """
    helpers = helpers_known_in(file)
    for node in constraining_calls(file, line):
        known = helpers.get(name_of(node.func))
        count = 0 if known is None else len(names_of(known))
        if known is None or not 0 < count <= len(node.args) or any(isinstance(one, ast.Starred) for one in node.args):
            continue
        rest = node.args[count:]
        axes = axes_of_entries(rest)
        if axes is not None and known.args.vararg and unpacks(known, known.args.vararg.arg):
            last = node.args[-1]
            at, end = (rest[0].lineno, rest[0].col_offset) if rest else (last.end_lineno, last.end_col_offset)
            if at is not None and end is not None and at == last.end_lineno:
                mark = "" if rest else ", "
                yield (at, end, last.end_col_offset or 0), axes, partial(_arguments, rest, axes, mark)
        for one in node.args[1:] if not rest else ():
            axes = axes_in(one)
            if axes is not None and any(axes):
                given = list(one.elts) if isinstance(one, ast.Tuple | ast.List) else []
                if one.lineno == one.end_lineno:
                    yield (one.lineno, one.col_offset, one.end_col_offset or 0), axes, partial(_as_tuple, given, axes)


def _codes(given: Sequence[ast.expr], old: Dims, new: Dims) -> list[str]:
    """The entries of a spec as code, those that stay as they were written."""
    if any(isinstance(one, ast.Starred) for one in given):
        given = ()
    kept = [ast.unparse(one) if was == now else "" for one, was, now in zip(given, old, new)]
    texts = [repr(one) for one in entries_of(new)]
    return [own or text for own, text in zip_longest(kept, texts, fillvalue="")]


def _arguments(given: Sequence[ast.expr], old: Dims, mark: str, new: Dims) -> str:
    """Axes as the last arguments of a call, behind a mark."""
    return mark + ", ".join(_codes(given, old, without_end(new)))


def _as_tuple(given: Sequence[ast.expr], old: Dims, new: Dims) -> str:
    """Axes as a tuple, at least as long as it was."""
    length = max(len(old), len(without_end(new)))
    codes = _codes(given, old, (*new, *[()] * length)[:length])
    return f"({', '.join(codes)}{',' if len(codes) == 1 else ''})"


def _found(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return False


def _specs(node: ast.AST, names: tuple[str, ...], patterns: tuple[str, ...], helpers: SpecHelpers) -> Iterator[Written]:
    """The specs under a part of a source, each with what it is for."""
    found = _written(node, names, patterns, helpers)
    if found is not None:
        yield found
    elif not _is_spec(node, names, patterns, helpers):
        for child, more, keys in _children(node, helpers):
            yield from _specs(child, (*names, *more), (*patterns, *keys), helpers)


def _written(node: ast.AST, names: tuple[str, ...], patterns: tuple[str, ...], helpers: SpecHelpers) -> Written | None:
    """The spec that a part of a source is; None if it is none, or its axes are not written out."""
    if isinstance(node, ast.Name) and node.id in helpers.constants and names:
        constant = helpers.constants[node.id]
        return Written(constant.made or node, constant.axes, names, patterns, 0, helpers.constants)
    if isinstance(node, ast.Tuple) and _is_spec(node, names, patterns, helpers):
        axes = axes_of_entries(node.elts)
        return None if axes is None else Written(node, axes, names, patterns)
    return _made(node, names, patterns, helpers) if isinstance(node, ast.Call) else None


def _made(call: ast.Call, names: tuple[str, ...], patterns: tuple[str, ...], helpers: SpecHelpers) -> Written | None:
    """The spec that a call makes: of its last arguments, of several, or of all as `PartitionSpec` does."""
    name = name_of(call.func)
    fixed, of = helpers.makers.get(name, (-1, ""))
    axes = axes_of_entries(call.args[fixed:]) if 0 <= fixed <= len(call.args) else None
    if axes is not None:
        named = [str(one.value.value) for one in call.keywords if isinstance(one.value, ast.Constant)] if of else []
        own = (*names, *_texts(call.args[:fixed]), *named, *filter(None, [of]))
        return Written(call, axes, own, patterns, fixed)
    if name in helpers.own:
        return Written(*helpers.own[name], names, patterns, is_shared=True)
    template = helpers.templates.get(name)
    entries = None if template is None else template.entries_of(call)
    axes = None if entries is None else axes_of_entries(entries)
    if template is not None and entries is not None and axes is not None:
        others = [one for one in (*call.args, *(word.value for word in call.keywords)) if one not in entries]
        return Written(call, axes, (*names, *_texts(others), template.of), patterns, template=template)
    axes = axes_of_entries(call.args) if name in SPECS else None
    return None if axes is None else Written(call, axes, names, patterns)


def _texts(nodes: Sequence[ast.expr]) -> list[str]:
    """The strings among some arguments."""
    return [one.value for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def _is_spec(node: ast.AST, names: tuple[str, ...], patterns: tuple[str, ...], helpers: SpecHelpers) -> bool:
    """Whether a part of a source is a spec, also one whose axes are not written out."""
    if isinstance(node, ast.Call):
        return name_of(node.func) in SPECS
    is_named = bool(names) and names[-1] in PARTITIONING | _KEYWORDS
    return isinstance(node, ast.Tuple) and (bool(patterns) or is_named or _is_of(node, helpers.axes))


def _is_of(node: ast.Tuple, axes: frozenset[str]) -> bool:
    """Whether a tuple has axes of the mesh alone, and nothing for other dimensions."""
    found = axes_of_entries(node.elts)
    return found is not None and any(found) and all(axis in axes for names in found for axis in names)


def _children(node: ast.AST, helpers: SpecHelpers) -> Iterator[tuple[ast.AST, tuple[str, ...], tuple[str, ...]]]:
    """The parts of a piece of source, each with the names and the patterns that it is for beside those of the whole."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values):
            yield value, (str(key.value),) if isinstance(key, ast.Constant) else (), ()
    elif isinstance(node, ast.DictComp) and isinstance(node.generators[0].iter, ast.Tuple | ast.List):
        is_key = name_of(node.key) == name_of(node.generators[0].target)
        keys = _texts(node.generators[0].iter.elts) if is_key else []
        yield from ((node.value, tuple(names), ()) for names in ([[key] for key in keys] or [[]]))
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
