"""Cures by other code: a kernel in `jax.shard_map`, constraints left out, or with the axes that they drop."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from pyshardy.checkup.cures import Cure
from pyshardy.checkup.kinds.rules import names_patch
from pyshardy.checkup.patching.kernel_patch import KernelCall, kernel_call
from pyshardy.checkup.patching.source import replaced, replaced_all, user_files
from pyshardy.checkup.patching.specs import line_patch, output_layout_patch
from pyshardy.checkup.program.families import batch_rows, dims_of
from pyshardy.core.axes import Dims
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.spec import format_spec
from pyshardy.ir.module import Module
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import module_meshes
from pyshardy.propagation.origins import CONSTRAINT
from pyshardy.report.diagnosis import FindingKind
from pyshardy.report.patch import file_diff, imports_jax, mesh_in, name_of_class
from pyshardy.results.hints.code import Code, CodeEdit, ShardMap, shard_maps, strided_micro_batches
from pyshardy.results.hints.constraints import (
    left_out_constraints,
    other_constraints,
    whole_batch_constraints,
    wider_constraints,
)
from pyshardy.results.partition import Partition
from pyshardy.results.propagation import Propagation
from pyshardy.source.assignments import read_lines
from pyshardy.source.constraining import CONSTRAIN, constraining_calls, takes_a_spec
from pyshardy.source.meanings import name_of
from pyshardy.source.places import SourcePlace
from pyshardy.source.syntax import syntax_tree
from pyshardy.transforms.code_changes import RESHAPE

_MOST = 6
"""The number of collectives whose kernels are tried."""


def kernel_cures(part: Partition, mesh_name: str, mesh: Mesh) -> Iterator[Cure]:
    """The kernels that make devices communicate, on shards.

    Args:
        part: The program, partitioned by pyshardy.
        mesh_name: The name of its mesh.
        mesh: Its mesh.
    """
    groups: dict[tuple[str, int] | CodeEdit, list[ShardMap]] = {}
    calls: dict[tuple[str, int], tuple[KernelCall, ShardMap]] = {}
    stories: dict[CodeEdit, str] = {}
    for found in part.explained_collectives[:_MOST]:
        for one in shard_maps(part.why, found.causes[0], part.before, mesh_name, mesh):
            call = kernel_call(one.edit.codes[0].path, len(one.inputs))
            if call is not None:
                calls.setdefault(call.line, (call, one))
            stories.setdefault(one.edit, found.story.text)
            groups.setdefault(one.edit if call is None else call.line, []).append(one)
    for alone in [key for key in groups if isinstance(key, CodeEdit)]:
        line = alone.codes[0].path[0][:2]  # JAX says of the gradient of a function with a rule where that is called
        if line in calls:
            groups[line] += groups.pop(alone)
    for key, alike in groups.items():
        edit = alike[0].edit
        cure = _cure(FindingKind.KERNEL, edit, f"{edit.what} gets its operands whole", stories[edit])
        if not isinstance(key, CodeEdit):
            call, first = calls[key]
            text = cure.text.replace(edit.what, call.text, 1)
            patch = partial(call.patch, first.inputs, first.outputs, dict(mesh.axes))
            cure = replace(cure, text=text, make_patch=patch)
        yield replace(cure, apply=partial(_all_applied, [one.edit for one in alike]))


def constraint_cures(module: Module) -> Iterator[Cure]:
    """The program without the constraints of one line each.

    Args:
        module: The program.
    """
    for edit in left_out_constraints(module):
        why = "what comes before it and what follows is sharded otherwise"
        yield _cure(FindingKind.CONSTRAINT, edit, f"{edit.what} costs more than it saves", why)


def wider_cures(propagated: Propagation) -> Iterator[Cure]:
    """Constraints that let through the axes that they drop.

    Args:
        propagated: The program, propagated by pyshardy.
    """
    for edit, was, wider in wider_constraints(propagated):
        lost = [str(axis) for axes in wider.dim_axes for axis in axes if axis not in chain(*was.dim_axes)]
        what = f"{edit.what} drops {' and '.join(lost)}, which the value has before it"
        why = "a dimension that a constraint does not name is whole on every device"
        make_patch = partial(_spec_patch, propagated.before, edit.place, was, wider)
        yield Cure(FindingKind.CONSTRAINT, what, why, edit.place, edit.text, edit.apply, make_patch, edit.what)


def batch_constraint_cures(propagated: Propagation) -> Iterator[Cure]:
    """Constraints that keep only some of the axes that split a batch, with all of them.

    Args:
        propagated: The program, propagated by pyshardy.
    """
    for edit, was, wider in whole_batch_constraints(propagated, batch_rows(propagated.before)):
        batch = format_spec(dims_of(wider)[:1])
        what = f"{edit.what} keeps the batch, which comes in as {batch}, along fewer axes"
        why = "devices along the others then compute the same rows"
        make_patch = partial(_spec_patch, propagated.before, edit.place, was, wider)
        yield Cure(FindingKind.CONSTRAINT, what, why, edit.place, edit.text, edit.apply, make_patch, edit.what)


def other_cures(propagated: Propagation) -> Iterator[Cure]:
    """Constraints with the axes of two dimensions exchanged, or without one that what follows takes away again.

    Args:
        propagated: The program, propagated by pyshardy.
    """
    for edit, was, other in other_constraints(propagated):
        what = f"{edit.what} splits the value otherwise than what is around it"
        make_patch = partial(_spec_patch, propagated.before, edit.place, was, other)
        yield Cure(
            FindingKind.CONSTRAINT, what, "", edit.place, edit.text, edit.apply, make_patch, edit.what,
            frees=not _moves(was, other),
        )  # fmt: skip


def _moves(was: TensorSharding, other: TensorSharding) -> bool:
    """Whether the same axes split other dimensions: memory is then not held for nothing."""
    is_same = {*chain(*was.dim_axes)} == {*chain(*other.dim_axes)}
    return is_same and [bool(axes) for axes in was.dim_axes] != [bool(axes) for axes in other.dim_axes]


def micro_batch_cures(part: Partition) -> Iterator[Cure]:
    """Micro-batches of every n-th row, where a line makes them of stretches of rows that are split.

    Args:
        part: The program, partitioned by pyshardy.
    """
    lines: dict[tuple[str, int], list[CodeEdit]] = {}
    constrained = {
        Code.of(op, part.before.name)
        for op in ops_named(part.before.root, (RESHAPE,))
        if any(user.name == CONSTRAINT for user in op.result.users())
    }
    for edit in strided_micro_batches(part.why, part.before):
        if not constrained.isdisjoint(edit.codes):
            continue  # the user says how the parts are split
        lines.setdefault(edit.place[:2], []).append(edit)
    for edits in lines.values():
        first = edits[0]
        count = (first.codes[0].shapes[1] or (0,))[0]
        what = f"{first.what} are stretches of rows, so each part is on 1/{count} of the devices or moves to all"
        why = "the reshape divides the dimension of the batch, and its axis goes to the number of the part"
        text = f"{first.text}, {first.condition}"
        yield Cure(
            FindingKind.LOST_AXIS, what, why, first.place, text, partial(_all_applied, edits),
            partial(_strided_patch, first.place), first.what, is_exact=False,
        )  # fmt: skip


def _all_applied(edits: Sequence[CodeEdit], module: Module) -> Module:
    for edit in edits:
        module = edit.apply(module)
    return module


def _strided_patch(place: SourcePlace) -> str:
    """A diff of the reshape on a line; empty if the line has several, or does not write both sizes."""
    file, line, _ = place
    tree = syntax_tree(file)
    calls = [
        node
        for node in (() if tree is None else ast.walk(tree))
        if isinstance(node, ast.Call)
        and name_of(node.func) == "reshape"
        and (node.lineno, node.end_lineno) == (line, line)
    ]
    if len(calls) != 1:
        return ""
    call = calls[0]
    tuples = [one for one in call.args if isinstance(one, ast.Tuple)]
    sizes = tuples[0].elts if tuples else call.args
    if len(sizes) < 2 or any(isinstance(one, ast.Starred) for one in sizes[:2]):
        return ""
    first, second = sizes[:2]
    texts = {
        (line, first.col_offset, first.end_col_offset or 0): ast.unparse(second),
        (line, second.col_offset, second.end_col_offset or 0): ast.unparse(first),
        (line, call.end_col_offset or 0, call.end_col_offset or 0): ".swapaxes(0, 1)",
    }
    return replaced_all(file, texts)


def _spec_patch(module: Module, place: SourcePlace, was: TensorSharding, wider: TensorSharding) -> str:
    """A diff of the spec of a constraint, of its names or of keras's layout; empty if none is written out, or two."""
    file, line, _ = place
    tree = syntax_tree(file)
    old, new = (tuple(tuple(axis.name for axis in axes) for axes in one.dim_axes) for one in (was, wider))
    text = line_patch(file, line, old, new) or names_patch(module, place, old, new)
    text = text or output_layout_patch(user_files(module.root), old, new)
    sizes = {axis: size for mesh in module_meshes(module.root).values() for axis, size in mesh.axes}
    return text or ("" if tree is None else _other_call(file, tree, line, new, sizes))


def _other_call(file: str, tree: ast.Module, line: int, new: Dims, sizes: Mapping[str, int]) -> str:
    """A diff that constrains the value of a call by a spec that it writes out; empty if the line has several.

    It is for specs that come from elsewhere.
    """
    calls = constraining_calls(file, line)
    code, needed = mesh_in(file, tree, sizes)
    if len(calls) != 1 or needed or (calls[0].lineno, calls[0].end_lineno) != (line, line):
        return ""
    call, value = calls[0], ast.unparse(calls[0].args[0])
    spec = format_spec(new, name_of_class(tree, "PartitionSpec"))
    given = f"{name_of_class(tree, 'NamedSharding')}({code}, {spec})" if code else spec
    function = ast.unparse(call.func) if takes_a_spec(call) else f"jax.lax.{CONSTRAIN}"
    text = f"{function}({value}, {given})"
    return replaced(file, line, call.col_offset, call.end_col_offset or 0, text) if imports_jax(tree) else ""


def _cure(kind: FindingKind, edit: CodeEdit, what: str, why: str) -> Cure:
    text = ", ".join(filter(None, (edit.text, edit.condition)))
    make_patch = partial(_patch, edit.place) if kind is FindingKind.CONSTRAINT else str
    return Cure(kind, what, why, edit.place, text, edit.apply, make_patch)


def _patch(place: SourcePlace) -> str:
    """A diff without the call; empty if the line has several, or one that goes over several lines."""
    file, line, _ = place
    tree, calls = syntax_tree(file), constraining_calls(file, line)
    if tree is None or len(calls) != 1 or calls[0].end_lineno != line:
        return ""
    call, value = calls[0], calls[0].args[0]
    if isinstance(value, ast.Name) and _is_whole(tree, call, value.id):
        lines = read_lines(file)
        return file_diff(file, lines, [*lines[: line - 1], *lines[line:]])
    return replaced(file, line, call.col_offset, call.end_col_offset or 0, ast.unparse(value))


def _is_whole(tree: ast.Module, call: ast.Call, name: str) -> bool:
    """Whether a statement only gives a variable its constrained self, and others stand beside it."""
    for block in ast.walk(tree):
        body = getattr(block, "body", None)
        for node in body if isinstance(body, list) and len(body) > 1 else ():
            if isinstance(node, ast.Assign) and node.value is call and len(node.targets) == 1:
                return isinstance(target := node.targets[0], ast.Name) and target.id == name
    return False
