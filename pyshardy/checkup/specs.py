"""Changes of the user's source where it writes the sharding of an input, as diffs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pyshardy.checkup.source import replaced_all
from pyshardy.core.axes import Dims
from pyshardy.core.spec import format_spec
from pyshardy.report.rules import without_end
from pyshardy.source.syntax import helpers_of, name_of, syntax_tree

_SPECS = frozenset(("P", "PS", "PartitionSpec"))
_PARTITIONING = frozenset(("with_partitioning", "with_logical_partitioning"))
"""Functions of flax that take the axes as a tuple."""
_KEYWORDS = frozenset(("sharding", "sharding_names", "out_sharding"))
"""Arguments and entries in which flax takes the axes as a tuple."""
_WORD = re.compile(r"\w+")
_HOLDERS = frozenset(("value", "raw_value"))
"""How flax calls what holds an array; a source does not write it."""
_ENDINGS = ("_init", "_metadata")
"""What flax adds to the name of an array for the argument that says how it is made."""


class _Written(NamedTuple):
    """A spec in a source.

    Attributes:
        node: The call of `PartitionSpec`, or the tuple.
        axes: Its axes.
        names: The keys, arguments and variables that it is for, the outermost first.
        patterns: The keys of a table of regular expressions that it is for.
    """

    node: ast.Call | ast.Tuple
    axes: Dims
    names: tuple[str, ...]
    patterns: tuple[str, ...]

    def fits(self, name: str) -> int:
        """How many parts of an input's name it is written for; 0 if not for the last one."""
        parts = [part for part in _WORD.findall(name) if part not in _HOLDERS and not part.isdigit()]
        if any(_found(pattern, name) for pattern in self.patterns):
            return len(parts)
        own = {one.removesuffix(ending) for one in self.names for ending in ("", *_ENDINGS)}
        return sum(part in own for part in parts) if parts and parts[-1] in own else 0


class SpecChange(NamedTuple):
    """Another spec for an input.

    Attributes:
        name: The input's name.
        old: The axes that it has.
        new: The axes to write.
        is_only: Whether no other input has the old axes: then a spec that a source writes once is for this one.
    """

    name: str
    old: Dims
    new: Dims
    is_only: bool = False


def spec_patch(files: Iterable[str], changes: Sequence[SpecChange]) -> str:
    """A diff that changes the specs of inputs; empty unless one file has each of them, once.

    A spec is for an input if it stands in a dictionary, a call or an assignment under the last part of the input's
    name; of several, that under most parts.

    Args:
        files: Where to look; the first one that has the first input's counts.
        changes: The changes.
    """
    for file in files:
        tree = syntax_tree(file)
        written = [] if tree is None else list(_specs(tree, (), ()))
        found = [_place_of(change, written) for change in changes]
        if not found or not found[0]:
            continue
        texts: dict[tuple[int, int, int], str] = {}
        for place, change in zip(found, changes):
            if len(place) != 1 or place[0].lineno != place[0].end_lineno:
                return ""
            node = place[0]
            text = _text(node, change.new)
            if texts.setdefault((node.lineno, node.col_offset, node.end_col_offset or 0), text) != text:
                return ""
        return replaced_all(file, texts)
    return ""


def line_patch(file: str, tree: ast.Module, line: int, old: Dims, new: Dims) -> str:
    """A diff that changes the spec that a line writes, also as arguments of a helper; empty unless it does so once."""
    wanted = without_end(old)
    written = [(one.node, one.axes, _text(one.node, new)) for one in _specs(tree, (), ()) if one.node.lineno == line]
    found = [
        ((node.col_offset, node.end_col_offset or 0), text)
        for node, axes, text in written
        if without_end(axes) == wanted and node.end_lineno == line
    ]
    found += [(columns, _arguments(new)) for columns, axes in _helped(tree, line) if without_end(axes) == wanted]
    if len(found) != 1:
        return ""
    (first, last), text = found[0]
    return replaced_all(file, {(line, first, last): text if last > first else f", {text}"})


def _helped(tree: ast.Module, line: int) -> Iterator[tuple[tuple[int, int], Dims]]:
    """The axes that calls on a line hand to helpers that constrain, as in `put(x, "data")`, with their columns."""
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


def _unpacks(helper: ast.FunctionDef, name: str) -> bool:
    """Whether a function makes a spec of its further arguments, `P(*spec)`."""
    calls = (node for node in ast.walk(helper) if isinstance(node, ast.Call) and name_of(node.func) in _SPECS)
    return any(
        isinstance(one, ast.Starred) and isinstance(one.value, ast.Name) and one.value.id == name
        for call in calls
        for one in call.args
    )


def _arguments(axes: Dims) -> str:
    """Axes as arguments, as of `P`."""
    return format_spec(axes)[len("P(") : -1]


def _place_of(change: SpecChange, written: Sequence[_Written]) -> list[ast.Call | ast.Tuple]:
    """Where a source writes the spec of an input; several places if it is not sure."""
    wanted = without_end(change.old)
    found = [one for one in written if without_end(one.axes) == wanted]
    scores = [one.fits(change.name) for one in found]
    best = [one.node for one, score in zip(found, scores) if score and score == max(scores)]
    return best or ([one.node for one in found] if change.is_only and len(found) == 1 else [])


def _text(node: ast.Call | ast.Tuple, new: Dims) -> str:
    if isinstance(node, ast.Call):
        return format_spec(new, ast.unparse(node.func))
    entries = [None if not axes else axes[0] if len(axes) == 1 else axes for axes in new]
    length = max(len(node.elts), len(without_end(new)))
    return repr(tuple([*entries, *[None] * length][:length]))


def _found(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return False


def _specs(node: ast.AST, names: tuple[str, ...], patterns: tuple[str, ...]) -> Iterator[_Written]:
    """The specs under a part of a source, each with what it is for."""
    is_call = isinstance(node, ast.Call) and name_of(node.func) in _SPECS
    is_tuple = isinstance(node, ast.Tuple) and bool(patterns or (names and names[-1] in _PARTITIONING | _KEYWORDS))
    if (is_call or is_tuple) and isinstance(node, (ast.Call, ast.Tuple)):
        axes = _axes(node.args if isinstance(node, ast.Call) else node.elts)
        if axes is not None:
            yield _Written(node, axes, names, patterns)
        return
    for child, more, keys in _children(node):
        yield from _specs(child, (*names, *more), (*patterns, *keys))


def _children(node: ast.AST) -> Iterator[tuple[ast.AST, tuple[str, ...], tuple[str, ...]]]:
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
    elif isinstance(node, ast.Call):
        named = [one.value for one in node.keywords if one.arg == "name"]
        own = tuple(str(one.value) for one in named if isinstance(one, ast.Constant))
        for argument in node.args:
            yield argument, (*own, name_of(node.func)), ()
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
