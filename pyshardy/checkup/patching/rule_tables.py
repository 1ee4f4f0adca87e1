"""Tables of logical axis rules in a user's source: what they make of names of dimensions, and changes of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pyshardy.checkup.patching.source import replaced
from pyshardy.checkup.patching.spec_helpers import axes_of_entries, makers_in
from pyshardy.checkup.patching.written_specs import written_specs
from pyshardy.core.axes import Dims
from pyshardy.report.patch import file_diff, in_quotes_of
from pyshardy.source.assignments import read_lines
from pyshardy.source.meanings import is_literal, literal
from pyshardy.source.places import format_place


class Rule(NamedTuple):
    """One rule of a table in a source.

    Attributes:
        name: The name of dimensions.
        axes: Their mesh axes.
        node: The place of the axes; of the last rule of the table if it has none for this name.
        is_missing: Whether it has none.
        is_entry: Whether the table is a dictionary.
    """

    name: str
    axes: tuple[str, ...]
    node: ast.expr
    is_missing: bool = False
    is_entry: bool = False

    def text(self, axes: tuple[str, ...]) -> str:
        """It with some axes, as code."""
        one = repr(axes[0] if len(axes) == 1 else axes or None)
        return f"{self.name!r}: {one}" if self.is_entry else f"({self.name!r}, {one})"


class RuleChange(NamedTuple):
    """Other mesh axes for the name of a rule.

    Attributes:
        file: The file of the table.
        rule: The rule.
        axes: The axes.
    """

    file: str
    rule: Rule
    axes: tuple[str, ...]

    @property
    def _at(self) -> str:
        return format_place((self.file, self.rule.node.lineno, self.rule.node.col_offset))

    @property
    def what(self) -> str:
        """What is wrong without it, in words."""
        name, axes = self.rule.name, self.rule.axes
        if self.rule.is_missing:
            return f"no rule of the table at {self._at} is for {name!r}, so these dimensions are whole"
        has = f"has {_code(axes)}" if axes else "has no axis"
        return f"the rule of {name!r} at {self._at} {has}, which costs more than {_code(self.axes)}"

    @property
    def text(self) -> str:
        """What to write."""
        new = self.rule.text(self.axes)
        if self.rule.is_missing:
            return f"one more rule: {new} behind {self._at}"
        return f"{new} instead of {self.rule.text(self.rule.axes)} at {self._at}"

    def patch(self) -> str:
        """A diff of the table."""
        node = self.rule.node
        if not self.rule.is_missing:
            return replaced(self.file, node.lineno, node.col_offset, node.end_col_offset or 0, _code(self.axes))
        lines, at = read_lines(self.file), (node.end_lineno or node.lineno) - 1
        end = node.end_col_offset or 0
        before, rest = lines[at].encode()[:end].decode(), lines[at].encode()[end:].decode()
        if not self.rule.is_entry:  # what follows are the bracket of the rule and a comma, if any
            mark = next((mark for mark in ")]" if rest.lstrip().startswith((mark, f",{mark}"))), "")
            if not mark:
                return ""
            before, rest = before + rest[: rest.index(mark) + 1], rest[rest.index(mark) + 1 :]
        is_alone = before.lstrip().startswith(("(", "[", "'", '"')) and rest.strip() in ("", ",")
        indent = before[: len(before) - len(before.lstrip())]
        new = in_quotes_of(lines, self.rule.text(self.axes))
        text = f"{before},\n{indent}{new}{rest}" if is_alone else f"{before}, {new}{rest}"
        return file_diff(self.file, lines, [*lines[:at], *text.splitlines(keepends=True), *lines[at + 1 :]])


def _code(axes: tuple[str, ...]) -> str:
    """The axes of a rule, as code."""
    return repr(axes[0] if len(axes) == 1 else axes or None)


def rule_tables(tree: ast.Module, sizes: Mapping[str, int]) -> Iterator[list[Rule]]:
    """The tables of rules in a file: pairs of a name and of mesh axes, of which one at least is of this mesh.

    Args:
        tree: The source.
        sizes: The axes of the mesh.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            pairs = list(zip(node.keys, node.values))
        elif isinstance(node, ast.Tuple | ast.List):
            given = [one.elts for one in node.elts if isinstance(one, ast.Tuple | ast.List) and len(one.elts) == 2]
            pairs = [(one[0], one[1]) for one in given] if len(given) == len(node.elts) else []
        else:
            continue
        rules = [rule for one in pairs if (rule := _rule(*one, isinstance(node, ast.Dict))) is not None]
        is_table = len(rules) == len(pairs) > 1
        if is_table and any(axis in sizes for rule in rules for axis in rule.axes):
            yield rules


def _rule(key: ast.expr | None, value: ast.expr, is_entry: bool) -> Rule | None:
    if key is None or not is_literal(key):
        return None
    name, axes = literal(key), axes_of_entries([value])
    return None if axes is None or not isinstance(name, str) else Rule(name, axes[0], value, is_entry=is_entry)


def missing_rules(trees: Sequence[ast.Module], rules: Sequence[Rule], sizes: Mapping[str, int]) -> Iterator[Rule]:
    """The names of dimensions that stand beside those of rules, and have none, as rules without an axis.

    Args:
        trees: The sources.
        rules: A table.
        sizes: The axes of the mesh.
    """
    known = {rule.name for rule in rules}
    found: dict[str, None] = {}
    makers = makers_in(trees)
    for names in [one.axes for tree in trees for one in written_specs(tree, makers=makers)]:
        own = {one for given in names for one in given}
        if not own.isdisjoint(known) and own.isdisjoint(sizes):
            found |= dict.fromkeys(sorted(own - known))
    for name in found:
        yield Rule(name, (), rules[-1].node, is_missing=True, is_entry=rules[-1].is_entry)


def mapped(names: Dims, rules: Sequence[Rule]) -> Dims:
    """The mesh axes of dimensions by their names: the first rule that gives axes which are still free counts.

    Args:
        names: The name of each dimension, or none.
        rules: The rules.

    >>> node = ast.Constant(None)
    >>> mapped((("mlp",), ("embed",)), [Rule("embed", ("x",), node), Rule("mlp", ("x",), node)])
    ((), ('x',))
    """
    found: dict[int, tuple[str, ...]] = {}
    for rule in rules:
        for dim, given in enumerate(names):
            used = {axis for axes in found.values() for axis in axes}
            if given == (rule.name,) and dim not in found and used.isdisjoint(rule.axes):
                found[dim] = rule.axes
                break
    return tuple(found.get(dim, ()) for dim in range(len(names)))
