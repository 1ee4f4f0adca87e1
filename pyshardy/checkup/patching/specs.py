"""Changes of the user's source where it writes the sharding of an input, as diffs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pyshardy.checkup.patching.source import replaced_all
from pyshardy.checkup.patching.spec_helpers import makers_in
from pyshardy.checkup.patching.written_specs import (
    Written,
    entries_of,
    handed_to_helpers,
    written_on,
    written_specs,
)
from pyshardy.core.alike import general
from pyshardy.core.axes import Dims
from pyshardy.report.patch import file_diff, in_quotes_of
from pyshardy.report.rules import without_end
from pyshardy.source.assignments import read_lines
from pyshardy.source.meanings import name_of
from pyshardy.source.syntax import syntax_tree

_LAYOUT_MAP = "LayoutMap"
_OUTPUT = "output"
"""How keras calls the output of a layer, behind the path of the layer."""


class SpecChange(NamedTuple):
    """Another spec for an input.

    Attributes:
        name: The input's name.
        old: The axes that it has.
        new: The axes to write.
        others: The other inputs that have the old axes; None if that is not known. If each of them has a place of its
            own in the source, or there is none, a spec that is left over is for this one.
        path: The path by which keras knows it; empty if it does not.
    """

    name: str
    old: Dims
    new: Dims
    others: tuple[str, ...] | None = None
    path: str = ""


def spec_patch(files: Iterable[str], changes: Sequence[SpecChange]) -> str:
    """A diff that changes the specs of inputs; empty unless the files have each of them, once.

    A spec is for an input if it stands in a dictionary, a call or an assignment under the last part of the input's
    name. Of several, the one under most parts of the name counts, in the first file that has one.

    Args:
        files: Where to look.
        changes: The changes.
    """
    trees = [(file, tree) for file in files if (tree := syntax_tree(file)) is not None]
    axes = {axis for one in changes for dims in (one.old, one.new) for names in dims for axis in names}
    makers = makers_in([tree for _, tree in trees])
    written = [_Place(file, one) for file, tree in trees for one in written_specs(tree, axes, makers)]
    layout = next(((file, tree) for file, tree in trees if has_layout(tree)), None)
    variables = [one for one in changes if layout is not None and one.path]
    if any(len(axes) > 1 for one in variables for axes in one.new):
        return ""  # keras takes one axis for each dimension
    of_keras = [one for one in written if one.spec.patterns and isinstance(one.spec.node, ast.Tuple)]
    found = [_place_of(one, of_keras if one.path else written) for one in variables or changes]
    if layout is not None and not any(found) and (text := _layout_patch(*layout, changes)):
        return text
    known = [place.spec for places in found for place in places]
    shared = {one.node for one in known if one.is_shared}
    if any(one.spec.is_shared and one.spec.node in shared and one.spec not in known for one in written):
        return ""
    texts: dict[str, dict[tuple[int, int, int], str]] = {}
    for places, change in zip(found, variables or changes):
        parts = places[0].spec.parts(change.new) if len(places) == 1 else {}
        if not parts:
            return ""
        own = texts.setdefault(places[0].file, {})
        for node, text in parts.items():
            if node.lineno != node.end_lineno:
                return ""
            if own.setdefault((node.lineno, node.col_offset, node.end_col_offset or 0), text) != text:
                return ""
    return "".join(replaced_all(file, own) for file, own in texts.items())


class _Place(NamedTuple):
    """A spec in one of several files."""

    file: str
    spec: Written


def has_layout(tree: ast.Module) -> bool:
    """Whether a file makes a `LayoutMap` of keras."""
    return any(isinstance(one, ast.Call) and name_of(one.func) == _LAYOUT_MAP for one in ast.walk(tree))


def _layout_patch(file: str, tree: ast.Module, changes: Sequence[SpecChange]) -> str:
    """A diff with more entries of a `LayoutMap` of keras; empty if a file has none.

    Keras shards the optimizer state of a variable as the variable.
    """
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    maps = {
        name_of(one.targets[0])
        for one in assigned
        if isinstance(one.value, ast.Call) and name_of(one.value.func) == _LAYOUT_MAP
    }
    entries = [
        (one, ast.unparse(at.value))
        for one in assigned
        if isinstance(at := one.targets[0], ast.Subscript) and name_of(at.value) in maps
    ]
    keys = {(general(one.path).replace("*", ".*"), one.new) for one in changes if one.path}
    if not entries or not keys or len(dict(keys)) < len(keys):
        return ""
    last, name = max(entries, key=lambda pair: pair[0].lineno)
    lines, end = read_lines(file), last.end_lineno or last.lineno
    indent = lines[last.lineno - 1][: last.col_offset]
    made = [f"{name}[{key!r}] = {tuple(entries_of(new))!r}\n" for key, new in sorted(keys)]
    more = [f"{indent}{in_quotes_of(lines, one)}" for one in made]
    return file_diff(file, lines, [*lines[:end], *more, *lines[end:]])


def output_layout_patch(files: Iterable[str], old: Dims, new: Dims) -> str:
    """A diff of the entry of a `LayoutMap` of keras by which the output of a layer is split; empty if it is not sure.

    Args:
        files: Where to look.
        old: The axes that it has.
        new: The axes to write.
    """
    found = [
        (file, node, text)
        for file in files
        if (tree := syntax_tree(file)) is not None and has_layout(tree)
        for one in written_specs(tree)
        if any(key.endswith(_OUTPUT) for key in one.patterns) and without_end(one.axes) == without_end(old)
        for node, text in one.parts(new).items()
    ]
    if len(found) != 1 or found[0][1].lineno != found[0][1].end_lineno:
        return ""
    file, node, text = found[0]
    return replaced_all(file, {(node.lineno, node.col_offset, node.end_col_offset or 0): text})


def line_patch(file: str, line: int, old: Dims, new: Dims) -> str:
    """A diff that changes the spec that a line writes, also as arguments of a helper; empty unless it does so once."""
    wanted = without_end(old)
    found = [
        ((node.lineno, node.col_offset, node.end_col_offset or 0), text)
        for one in written_on(file, line)
        if without_end(one.axes) == wanted
        for node, text in one.parts(new).items()
        if node.lineno == node.end_lineno
    ]
    helped = handed_to_helpers(file, line)
    found += [(place, code(new)) for place, axes, code in helped if without_end(axes) == wanted]
    return replaced_all(file, dict(found)) if len(found) == 1 else ""


def _place_of(change: SpecChange, written: Sequence[_Place]) -> list[_Place]:
    """Where a source writes the spec of an input; several places if it is not sure."""
    wanted = without_end(change.old)
    found = [one for one in written if without_end(one.spec.axes) == wanted]
    named = _named(change.name, found)
    if named or change.others is None:
        return named
    of_others = [_named(name, found) for name in change.others]
    left = [one for one in found if not any(one in places for places in of_others)]
    return left if len(left) == 1 and all(of_others) else []


def _named(name: str, places: Sequence[_Place]) -> list[_Place]:
    """The places that fit the name of an input best, in the first file that has one."""
    scores = [one.spec.fits(name) for one in places]
    best = [one for one, score in zip(places, scores) if score and score == max(scores)]
    return [one for one in best if one.file == best[0].file]
