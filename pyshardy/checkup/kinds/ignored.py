"""Constraints by logical names that flax ignores, because it sees no mesh where the step is traced."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from pyshardy.checkup.cures import Cure
from pyshardy.checkup.patching.rule_tables import Rule, mapped, rule_tables
from pyshardy.checkup.patching.source import replaced, user_files
from pyshardy.checkup.patching.spec_helpers import axes_in
from pyshardy.core.axes import Dims
from pyshardy.core.mesh import Mesh
from pyshardy.ir.module import Module
from pyshardy.ir.named_values import NamedValue, named_values
from pyshardy.ir.op_lists import ops_named
from pyshardy.propagation.origins import CONSTRAINT
from pyshardy.report.constraints import PlanConstraint
from pyshardy.report.diagnosis import FindingKind
from pyshardy.results.constraining import with_plan_constraints
from pyshardy.results.hints.code import Code
from pyshardy.searching.autopartition.space import are_equal_shards
from pyshardy.source.constraining import CONSTRAIN_BY_NAMES
from pyshardy.source.meanings import name_of
from pyshardy.source.places import format_place
from pyshardy.source.syntax import syntax_tree

_MESH = "mesh"
_Files = Sequence[tuple[str, ast.Module]]


class _Call(NamedTuple):
    """A call that constrains a variable: its file and line, the variable, and the names of the dimensions."""

    file: str
    line: int
    variable: str
    names: Dims


def ignored_cures(module: Module, mesh: Mesh) -> Iterator[Cure]:
    """All constraints by logical names that the program lacks, if it has none of them.

    Args:
        module: The program.
        mesh: Its mesh.
    """
    sizes = {axis: size for axis, size in mesh.axes if size > 1}
    files = [(file, tree) for file in user_files(module.root) if (tree := syntax_tree(file)) is not None]
    calls = [one for file, tree in files for one in _calls(file, tree)]
    made = {place[:2] for op in ops_named(module.root, (CONSTRAINT,)) for place in Code.of(op, module.name).path}
    if not calls or any((one.file, one.line) in made for one in calls):
        return
    values = named_values(module.root)
    for rules in (rules for _, tree in files for rules in rule_tables(tree, sizes)):
        constraints = [one for call in calls if (one := _constraint(call, rules, values, sizes)) is not None]
        if not constraints:
            continue
        place = constraints[0].file, calls[0].line, 0
        count = "the constraint" if len(calls) == 1 else f"all {len(calls)} constraints"
        yield Cure(
            FindingKind.CONSTRAINT,
            f"flax ignores {count} by logical names, the first at {format_place((calls[0].file, calls[0].line, 0))}",
            "with_logical_constraint does nothing where flax sees no mesh, and `with mesh:` sets none that it sees",
            place,
            "trace the step under jax.set_mesh(mesh), or give with_logical_constraint its mesh",
            partial(with_plan_constraints, constraints=constraints, mesh=mesh),
            partial(_patch, files),
        )
        return


def _calls(file: str, tree: ast.Module) -> Iterator[_Call]:
    """The calls of a file without a mesh of their own that constrain a variable by names that it writes out."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or name_of(node.func) not in CONSTRAIN_BY_NAMES or len(node.args) != 2:
            continue
        value, given = node.args[0], axes_in(node.args[1])
        if given is not None and isinstance(value, ast.Name) and all(word.arg != _MESH for word in node.keywords):
            yield _Call(file, node.lineno, value.id, given)


def _constraint(
    call: _Call, rules: Sequence[Rule], values: Sequence[NamedValue], sizes: Mapping[str, int]
) -> PlanConstraint | None:
    """The constraint of the value that a variable had before a call; None if it is unknown or would change nothing."""
    before = [
        one
        for one in values
        if (one.name, one.value.span.file) == (call.variable, call.file) and one.value.span.line < call.line
    ]
    one = max(before, key=lambda one: one.value.span.line, default=None)
    dims = mapped(call.names, rules)
    if one is None or len(dims) != len(one.value.shape) or not any(dims):
        return None
    value = one.value
    if not are_equal_shards(value.shape, dims, sizes):
        return None
    return PlanConstraint(
        one.name, value.function, *value.span, value.shape, value.element, dims, value.count, 0.0, 0.0
    )


def _patch(files: _Files) -> str:
    """A diff that sets the mesh where a file enters it; empty unless it is entered once."""
    found = [
        (file, item.context_expr)
        for file, tree in files
        for node in ast.walk(tree)
        if isinstance(node, ast.With)
        for item in node.items
        if isinstance(item.context_expr, ast.Name | ast.Attribute) and name_of(item.context_expr).endswith(_MESH)
    ]
    if len(found) != 1:
        return ""
    file, node = found[0]
    return replaced(file, node.lineno, node.col_offset, node.end_col_offset or 0, f"jax.set_mesh({ast.unparse(node)})")
