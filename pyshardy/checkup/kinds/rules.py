"""Cures of logical axis rules: a rule of flax gives a name of dimensions another mesh axis, wherever it is used."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

from pyshardy.checkup.cures import Cure
from pyshardy.checkup.patching.rule_tables import Rule, RuleChange, mapped, missing_rules, rule_tables
from pyshardy.checkup.patching.source import replaced, user_files
from pyshardy.checkup.patching.spec_helpers import axes_in, axes_of_entries, makers_in, unpacks
from pyshardy.checkup.patching.written_specs import Written, entries_of, written_specs
from pyshardy.checkup.program.annotating import annotated
from pyshardy.checkup.program.families import axes_of, dims_of
from pyshardy.core.axes import Dims
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.frontend.interface import InterfaceTensor, input_tensors
from pyshardy.ir.module import Module
from pyshardy.ir.named_values import sharding_of
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import module_meshes
from pyshardy.propagation.origins import CONSTRAINT
from pyshardy.report.diagnosis import FindingKind
from pyshardy.report.rules import without_end
from pyshardy.results.hints.code import Code
from pyshardy.searching.autopartition.space import are_equal_shards
from pyshardy.source.constraining import CONSTRAIN, CONSTRAIN_BY_NAMES, constraining_calls
from pyshardy.source.meanings import name_of
from pyshardy.source.places import SourcePlace
from pyshardy.source.syntax import syntax_tree

_MOST_RULES = 12
"""The changes of rules that are tried."""


def rule_cures(
    module: Module, mesh_name: str, mesh: Mesh, dropping: Collection[tuple[str, int]] = ()
) -> Iterator[Cure]:
    """The program with one rule changed, in all inputs and constraints that use its name.

    Args:
        module: The program.
        mesh_name: The name of its mesh.
        mesh: Its mesh.
        dropping: The lines of constraints that drop an axis.
    """
    sizes = {axis: size for axis, size in mesh.axes if size > 1}
    files = [(file, tree) for file in user_files(module.root) if (tree := syntax_tree(file)) is not None]
    for file, tree in files:
        for rules in rule_tables(tree, sizes):
            uses = _Uses(module, files, [*rules, *missing_rules([tree for _, tree in files], rules, sizes)])
            for place, axes in _changes(uses, sizes, dropping)[:_MOST_RULES]:
                cure = _cure(module, file, uses, place, axes, mesh_name, sizes, dropping)
                if cure is not None:
                    yield cure


def names_patch(module: Module, place: SourcePlace, old: Dims, new: Dims) -> str:
    """A diff of the names by which a line constrains a value, so that it gets other axes; empty if it is not sure.

    Args:
        module: The program.
        place: The line.
        old: The axes that the names stand for.
        new: The axes to write.
    """
    file, line, _ = place
    calls = [
        call for call in constraining_calls(file, line)
        if name_of(call.func) in CONSTRAIN_BY_NAMES and len(call.args) == 2
        and call.args[1].lineno == call.args[1].end_lineno
    ]  # fmt: skip
    sizes = {axis: size for mesh in module_meshes(module.root).values() for axis, size in mesh.axes}
    names = axes_in(calls[0].args[1]) if len(calls) == 1 else None
    if names is None:
        return ""
    trees = [tree for file in user_files(module.root) if (tree := syntax_tree(file)) is not None]
    for rules in (rules for tree in trees for rules in rule_tables(tree, sizes)):
        if mapped(names, rules) != old or len(names) != len(new):
            continue
        of_axes = {rule.axes: rule.name for rule in reversed(rules)}
        others = tuple(
            name if was == now else (of_axes.get(now, ""),) if now else () for name, was, now in zip(names, old, new)
        )
        if mapped(others, rules) == new:
            node = calls[0].args[1]
            text = repr(tuple(entries_of(others)))
            return replaced(file, node.lineno, node.col_offset, node.end_col_offset or 0, text)
    return ""


def _changes(
    uses: _Uses, sizes: Mapping[str, int], dropping: Collection[tuple[str, int]]
) -> list[tuple[int, tuple[str, ...]]]:
    """Rules with other axes by their place in the table.

    First come those of constraints that drop an axis, with one more, and the axes of a rule that has more of them; then
    those without an axis.
    """
    names = uses.names_at(dropping)
    alike = [
        (place, other.axes)
        for place, rule in enumerate(uses.rules)
        for other in uses.rules
        if rule.axes and set(rule.axes) < set(other.axes)
    ]
    more = [
        (place, (*rule.axes, axis))
        for place, rule in enumerate(uses.rules)
        for axis in sizes
        if rule.name in names and rule.axes and axis not in rule.axes
    ]
    others = [
        (place, (axis,))
        for place, rule in enumerate(uses.rules)
        for axis in sizes
        if rule.axes != (axis,) and len(rule.axes) < 2
    ]
    first = {place: (len(rule.axes), not rule.is_missing) for place, rule in enumerate(uses.rules)}
    return [*dict.fromkeys([*more, *alike]), *sorted(others, key=lambda change: first[change[0]])]


class _Uses:
    """The inputs and constraints of a program whose dimensions a source names.

    Attributes:
        rules: The rules by which the program got its shardings.
        axes: The axes that split an input.
        inputs: The inputs, each with the names that it may have.
        constraints: The number of each constraint, with the names of its dimensions and its shape.
        lines: The lines of each constraint, by its number.
    """

    def __init__(self, module: Module, files: Sequence[tuple[str, ast.Module]], rules: Sequence[Rule]) -> None:
        self.rules = rules
        known = {rule.name for rule in rules}
        makers = makers_in([tree for _, tree in files])
        written = [one for _, tree in files for one in written_specs(tree, makers=makers) if _is_named(one.axes, known)]
        self.axes = {axis for one in input_tensors(module.root) for axis in axes_of(one)}
        self.inputs = [(one, names) for one in input_tensors(module.root) if (names := _names_of(one, written, rules))]
        counts = {name: count for name, count, _ in makers}
        helpers = dict(pair for _, tree in files for pair in _helpers(tree, counts.keys()))
        lines = dict(pair for file, tree in files for pair in _constrained(file, tree, known, helpers, counts))
        self.constraints: list[tuple[int, Dims, tuple[int, ...]]] = []
        self.lines: dict[int, list[tuple[str, int]]] = {}
        for number, op in enumerate(ops_named(module.root, (CONSTRAINT,))):
            path = [place[:2] for place in Code.of(op, module.name).path]
            given = next((lines[place] for place in path if place in lines), None)
            shape = op.operands[0].type.shape
            dims = dims_of(op.attrs["sharding"])
            if given is not None and shape is not None and mapped(given, rules) == dims:
                self.constraints.append((number, given, shape))
                self.lines[number] = path

    def names_at(self, lines: Collection[tuple[str, int]]) -> set[str]:
        """The names of the dimensions of constraints that some lines make."""
        return {
            name
            for number, names, _ in self.constraints
            if not set(self.lines[number]).isdisjoint(lines)
            for one in names
            for name in one
        }

    def repeats(self, rules: Sequence[Rule]) -> bool:
        """Whether a spec would name an axis twice. Flax then leaves it out of the later dimension; JAX refuses that."""
        of_name = {rule.name: rule.axes for rule in reversed(rules)}
        given = [names for _, several in self.inputs for names in several]
        given += [names for _, names, _ in self.constraints]
        axes = [[axis for one in names for name in one for axis in of_name.get(name, ())] for names in given]
        return any(len(set(one)) < len(one) for one in axes)

    def changed(
        self, rules: Sequence[Rule], sizes: Mapping[str, int]
    ) -> tuple[list[tuple[InterfaceTensor, Dims]], dict[int, Dims]]:
        """The axes of the inputs and of the constraints by other rules, where they differ and divide."""
        inputs = []
        for one, several in self.inputs:
            old = dims_of(one.sharding) if one.sharding is not None else ()
            news = {(*old[: len(old) - len(names)], *mapped(names, rules)) for names in several}
            new = news.pop() if len(news) == 1 else old
            if new != old and are_equal_shards(one.shape, new, sizes):
                inputs.append((one, new))
        constraints = {
            number: new
            for number, names, shape in self.constraints
            if (new := mapped(names, rules)) != mapped(names, self.rules) and are_equal_shards(shape, new, sizes)
        }
        return inputs, constraints


def _is_named(axes: Dims, known: set[str]) -> bool:
    return bool(axes) and any(axes) and all(one in known for names in axes for one in names)


def _names_of(one: InterfaceTensor, written: Sequence[Written], rules: Sequence[Rule]) -> set[Dims]:
    """The names that the dimensions of an input may have: those that are written for it and give its sharding."""
    if one.sharding is None:
        return set()
    dims, rank = dims_of(one.sharding), len(one.shape)
    fitting = [
        (spec.fits(one.name), spec.axes)
        for spec in written
        if len(spec.axes) <= rank
        and without_end(dims[rank - len(spec.axes) :]) == without_end(mapped(spec.axes, rules))
    ]
    best = max((score for score, _ in fitting), default=0)
    return {axes for score, axes in fitting if score == best and score}


def _helpers(tree: ast.Module, makers: Collection[str]) -> Iterator[tuple[str, int]]:
    """The functions of a file that constrain by their further arguments, with the number of those before."""
    for node in ast.walk(tree):
        rest = node.args.vararg if isinstance(node, ast.FunctionDef) else None
        if not isinstance(node, ast.FunctionDef) or rest is None:
            continue
        calls = [one for one in ast.walk(node) if isinstance(one, ast.Call) and len(one.args) > 1]
        given = [(name_of(call.func), call.args[1]) for call in calls]
        if any(
            (isinstance(one, ast.Name) and one.id == rest.arg) if name in CONSTRAIN_BY_NAMES
            else name == CONSTRAIN and unpacks(one, rest.arg, makers)
            for name, one in given
        ):  # fmt: skip
            yield node.name, len(node.args.posonlyargs) + len(node.args.args)


def _constrained(
    file: str, tree: ast.Module, known: set[str], helpers: Mapping[str, int], makers: Mapping[str, int]
) -> Iterator[tuple[tuple[str, int], Dims]]:
    """The lines of constraints by names of dimensions, each with these names."""
    for node in ast.walk(tree):
        given = _names_in(node, helpers, makers) if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and given and all(name in known for names in given for name in names):
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                yield (file, line), given


def _names_in(call: ast.Call, helpers: Mapping[str, int], makers: Mapping[str, int]) -> Dims | None:
    """The names of dimensions by which a call constrains a value; None if it does not."""
    name = name_of(call.func)
    if name in helpers:
        return axes_of_entries(call.args[helpers[name] :])
    if len(call.args) < 2:
        return None
    second = call.args[1]
    if name in CONSTRAIN_BY_NAMES:
        return axes_in(second)
    made = [
        one
        for one in (ast.walk(second) if name == CONSTRAIN else ())
        if isinstance(one, ast.Call) and name_of(one.func) in makers
    ]
    return axes_of_entries(made[0].args[makers[name_of(made[0].func)] :]) if made else None


def _cure(
    module: Module,
    file: str,
    uses: _Uses,
    place: int,
    axes: tuple[str, ...],
    mesh_name: str,
    sizes: Mapping[str, int],
    dropping: Collection[tuple[str, int]],
) -> Cure | None:
    """One rule with other axes; None if it changes nothing."""
    rule = uses.rules[place]
    new = [one._replace(axes=axes) if at == place else one for at, one in enumerate(uses.rules)]
    inputs, constraints = uses.changed(new, sizes)
    if (not inputs and not constraints) or (uses.repeats(new) and not uses.repeats(uses.rules)):
        return None
    is_dropping = any(line in dropping for number in constraints for line in uses.lines[number])
    change = RuleChange(file, rule, axes)
    counts = [f"{len(found)} {what}" for found, what in ((inputs, "inputs"), (constraints, "constraints")) if found]
    pairs = [(one, sharding_of(dims, mesh_name)) for one, dims in inputs]
    shardings = {number: sharding_of(dims, mesh_name).closed() for number, dims in constraints.items()}
    return Cure(
        FindingKind.RULE,
        change.what,
        f"{' and '.join(counts)} have a dimension of this name",
        (file, rule.node.lineno, rule.node.col_offset),
        change.text,
        partial(_applied, pairs=pairs, shardings=shardings),
        change.patch,
        ("rule", rule.name),
        inputs=frozenset(one.index for one, _ in inputs),
        is_design=axes[-1] not in uses.axes or not (inputs or is_dropping),
    )


def _applied(
    module: Module, pairs: Sequence[tuple[InterfaceTensor, TensorSharding]], shardings: Mapping[int, TensorSharding]
) -> Module:
    found = annotated(module, pairs)
    with found.context:
        ops: list[Op] = list(ops_named(found.root, (CONSTRAINT,)))
        for number, sharding in shardings.items():
            ops[number].set_attr("sharding", sharding)
    return found
