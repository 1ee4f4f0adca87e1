"""Changes of tables of pairs, a regular expression and a spec, as diffs: one more pair at the head."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pyshardy.checkup.patching.source import replaced
from pyshardy.checkup.patching.spec_helpers import axes_of_entries
from pyshardy.checkup.program.families import dims_of
from pyshardy.core.axes import Dims
from pyshardy.core.spec import format_spec
from pyshardy.frontend.interface import InterfaceTensor
from pyshardy.report.patch import file_diff, in_quotes_of
from pyshardy.report.rules import without_end
from pyshardy.source.assignments import read_lines
from pyshardy.source.constraining import SPECS
from pyshardy.source.meanings import name_of
from pyshardy.source.syntax import syntax_tree

_WORD = re.compile(r"[\w*]+")
_HOLDERS = frozenset(("value", "raw_value"))
_PARTS = 2
"""The parts of a name that a new expression has: those of one layer's array."""


class _Table(NamedTuple):
    """A table of pairs in a source.

    Attributes:
        first: The first pair.
        spec: How the file calls `PartitionSpec`.
        separator: What its expressions have between the parts of a name.
        pairs: The expressions with their axes; empty if not all are written out.
    """

    first: ast.expr
    spec: str
    separator: str
    pairs: Sequence[tuple[str, Dims]] = ()


def table_patch(files: Iterable[str], inputs: Sequence[InterfaceTensor], changed: Mapping[int, Dims]) -> str:
    """A diff that puts pairs for some inputs before the others of a table.

    Args:
        files: Where to look; the first one that has a table counts.
        inputs: All inputs of the program.
        changed: The new axes of inputs by their number.

    Returns:
        The diff; empty if a file has no table or several, or if the ends of their names do not tell these inputs from
        others.
    """
    for file in files:
        tree = syntax_tree(file)
        tables = [] if tree is None else list(_tables(tree))
        if tree is not None and len(tables) == 1:
            if not all(_gives(tables[0], one) for one in inputs if one.index in changed):
                return ""
            found = _searched(file, tree, tables[0], inputs, changed)
            return found or _patch(file, tables[0], inputs, changed)
        if tables:
            return ""
    return ""


def _gives(table: _Table, one: InterfaceTensor) -> bool:
    """Whether an input may have its axes from a table: a pair for its name has them, or none is for it and it is whole.

    A batch has its axes from elsewhere.
    """
    if not table.pairs or one.sharding is None:
        return True
    path, own = table.separator.replace("\\", "").join(_WORD.findall(one.name)), without_end(dims_of(one.sharding))
    given = (_found(way, table.pairs, path) for way in (re.search, re.fullmatch))
    return own in [() if axes is None else without_end(axes) for axes in given]


def _searched(
    file: str, tree: ast.Module, table: _Table, inputs: Sequence[InterfaceTensor], changed: Mapping[int, Dims]
) -> str:
    """A diff of `re.match` to `re.search`; empty unless these inputs then get their axes, and all others keep theirs.

    The path of optimizer state has more in front than that of its weight.
    """
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.match"]
    if len(calls) != 1 or not table.pairs:
        return ""
    for one in inputs:
        path = table.separator.replace("\\", "").join(_WORD.findall(one.name)[1:])
        first, anywhere = (_found(way, table.pairs, path) for way in (re.match, re.search))
        wanted = changed.get(one.index)
        if wanted is not None and (anywhere is None or without_end(anywhere) != without_end(wanted)):
            return ""
        if wanted is None and first != anywhere:
            return ""
    function = calls[0].func
    return replaced(file, function.lineno, function.col_offset, function.end_col_offset or 0, "re.search")


def _found(way: Callable[[str, str], object], pairs: Sequence[tuple[str, Dims]], path: str) -> Dims | None:
    """The axes of the first pair whose expression fits a path."""
    try:
        return next((axes for pattern, axes in pairs if way(pattern, path)), None)
    except re.error:
        return None


def _tables(tree: ast.Module) -> Iterator[_Table]:
    for node in ast.walk(tree):
        pairs = node.elts if isinstance(node, ast.Tuple | ast.List) else []
        found = [pair for one in pairs if (pair := _pair(one)) is not None]
        if len(found) > 1 and len(found) == len(pairs):
            separator = "/" if "/" in "".join(pattern for pattern, _ in found) else r"\."
            axes = [(pattern, axes_of_entries(spec.args)) for pattern, spec in found]
            known = [(pattern, one) for pattern, one in axes if one is not None]
            yield _Table(pairs[0], ast.unparse(found[0][1].func), separator, known if len(known) == len(axes) else ())


def _pair(node: ast.expr) -> tuple[str, ast.Call] | None:
    """The expression of a pair, and the call of `PartitionSpec`."""
    if not isinstance(node, ast.Tuple | ast.List) or len(node.elts) != 2:
        return None
    key, value = node.elts
    if isinstance(key, ast.Constant) and isinstance(value, ast.Call) and name_of(value.func) in SPECS:
        return str(key.value), value
    return None


def _patch(file: str, table: _Table, inputs: Sequence[InterfaceTensor], changed: Mapping[int, Dims]) -> str:
    wanted: dict[tuple[str, ...], set[Dims | None]] = {}
    ends = {_end(one.name): None for one in inputs if one.index in changed}
    for one in inputs:
        wanted.setdefault(_end(one.name), set()).add(changed.get(one.index))
    if any(len(wanted[end]) != 1 or end[-1].isdigit() for end in ends):
        return ""  # the number of an array in a list is no part of a path
    lines = read_lines(file)
    at, column = table.first.lineno - 1, table.first.col_offset
    if lines[at][:column].strip():  # the first pair stands behind the bracket
        return ""
    new = []
    for end in ends:
        pattern = table.separator.join(end)
        quoted = f'"{pattern}"' if "\\" not in pattern else f'r"{pattern}"'
        specs = [in_quotes_of(lines, format_spec(dims, table.spec)) for dims in wanted[end] if dims is not None]
        new += [f"{' ' * column}({quoted}, {spec}),\n" for spec in specs]
    return file_diff(file, lines, [*lines[:at], *new, *lines[at:]])


def _end(name: str) -> tuple[str, ...]:
    """The last parts of a name.

    >>> _end("params['layers/0/q_proj/weight']"), _end("params['layers'][0]['q_proj']['kernel'].value")
    (('q_proj', 'weight'), ('q_proj', 'kernel'))
    """
    parts = _WORD.findall(name)
    parts = parts[:-1] if parts[-1] in _HOLDERS else parts
    return tuple(parts[-_PARTS:])
