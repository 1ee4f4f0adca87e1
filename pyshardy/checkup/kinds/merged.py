"""Cures of dimensions that a reshape merges so that axes are lost: another order, and lookups in each example."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from pyshardy.checkup.cures import Cure
from pyshardy.checkup.patching.source import replaced_all
from pyshardy.report.diagnosis import FindingKind
from pyshardy.results.hints.code import CodeEdit
from pyshardy.results.hints.merges import flat_lookups, merged_behind
from pyshardy.results.partition import Partition
from pyshardy.source.meanings import name_of
from pyshardy.source.syntax import syntax_tree
from pyshardy.transforms.code_changes import two_of_one

_RESHAPE = "reshape"
_MODULES = frozenset(("jnp", "np", "numpy"))
_WHY = "the rows of a device do not follow each other in the merged dimension, and an axis splits it into stretches"


def merge_cures(part: Partition) -> Iterator[Cure]:
    """Dimensions that are merged behind whole ones and lose their axes, merged before them.

    Args:
        part: The program, partitioned by pyshardy.
    """
    for edit in merged_behind(part.why, part.before):
        yield Cure(
            FindingKind.LOST_AXIS, edit.what, _WHY, edit.place, f"{edit.text}, {edit.condition}", edit.apply,
            partial(_patch, edit), edit.what,
        )  # fmt: skip


def lookup_cures(part: Partition) -> Iterator[Cure]:
    """Rows of a batch that are looked up in the rows of all its examples, looked up in each.

    Args:
        part: The program, partitioned by pyshardy.
    """
    for edit, why in flat_lookups(part.why, part.before):
        text = f"{edit.text}, {edit.condition}"
        yield Cure(FindingKind.LOST_AXIS, edit.what, why, edit.place, text, edit.apply, subject=edit.what)


def _patch(edit: CodeEdit) -> str:
    """A diff of the reshapes; empty unless each of their lines writes one that can be said."""
    texts: dict[str, dict[tuple[int, int, int], str]] = {}
    merges = 0
    for code in edit.codes:
        (file, line, _), shapes = code.path[0], [shape or () for shape in code.shapes[:2]]
        rank = max(map(len, shapes))
        dim, calls = two_of_one(*shapes), list(_reshapes(file, line))
        if dim is None or not calls:
            return ""
        own = texts.setdefault(file, {})
        for call in calls:
            of_two = _makes_two(call, rank)
            new = _two_swapped(call, dim) if of_two else _swapped(call, dim)
            merges += not of_two
            if not new or any(own.get(place, text) != text for place, text in new.items()):
                return ""
            own |= new
    return "".join(replaced_all(file, own) for file, own in texts.items()) if merges else ""


def _reshapes(file: str, line: int) -> Iterator[ast.Call]:
    """The calls of the method `reshape` on a line."""
    tree = syntax_tree(file)
    for node in () if tree is None else ast.walk(tree):
        own = node.func if isinstance(node, ast.Call) else None
        is_method = isinstance(own, ast.Attribute) and own.attr == _RESHAPE and name_of(own.value) not in _MODULES
        if isinstance(node, ast.Call) and is_method and node.func.end_lineno == line == node.end_lineno:
            yield node


def _sizes(call: ast.Call) -> list[ast.expr]:
    """The sizes that a reshape is given."""
    only = call.args[0] if len(call.args) == 1 else None
    return list(only.elts) if isinstance(only, ast.Tuple | ast.List) else call.args


def _makes_two(call: ast.Call, rank: int) -> bool:
    """Whether a reshape is given the sizes of all dimensions apart."""
    return len(_sizes(call)) >= rank or any(_shape_of(one) is not None for one in _sizes(call))


def _shape_of(size: ast.expr) -> ast.expr | None:
    """The array whose sizes, or first sizes, an argument is, as in `x.shape` or `*x.shape[:-1]`."""
    node = size.value if isinstance(size, ast.Starred) else size
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.slice.lower is None:
        node = node.value
    return node.value if isinstance(node, ast.Attribute) and node.attr == "shape" else None


def _swapped(call: ast.Call, dim: int) -> dict[tuple[int, int, int], str]:
    """A reshape of an array with two dimensions swapped."""
    given = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    return _behind(given, dim)


def _two_swapped(call: ast.Call, dim: int) -> dict[tuple[int, int, int], str]:
    """A reshape to two dimensions in the other order, which are then swapped; nothing if the sizes do not say."""
    sizes, turned = _sizes(call), _behind(call, dim)
    arrays = [array for one in sizes if (array := _shape_of(one)) is not None]
    if len(arrays) == 1 and not isinstance(sizes[0], ast.Constant):
        return {**turned, **_behind(arrays[0], dim)}
    if any(isinstance(one, ast.Starred) for one in sizes) or len(sizes) < dim + 2:
        return {}
    first, second = sizes[dim : dim + 2]
    return {**turned, _range(first): ast.unparse(second), _range(second): ast.unparse(first)}


def _behind(node: ast.expr, dim: int) -> dict[tuple[int, int, int], str]:
    end = node.end_col_offset or 0
    return {(node.end_lineno or node.lineno, end, end): f".swapaxes({dim}, {dim + 1})"}


def _range(node: ast.expr) -> tuple[int, int, int]:
    return node.lineno, node.col_offset, node.end_col_offset or 0
