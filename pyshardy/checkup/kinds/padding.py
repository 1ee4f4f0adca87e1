"""Cures of weights with a dimension that an axis does not divide: the dimension padded, as a vocabulary may be."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from math import lcm, prod
from typing import NamedTuple

from pyshardy.checkup.cures import Cure
from pyshardy.checkup.kinds.ports import annotation_patch
from pyshardy.checkup.patching.source import replaced_all, user_files
from pyshardy.checkup.patching.written_specs import parts_of
from pyshardy.checkup.program.annotating import annotated
from pyshardy.checkup.program.families import Family, axes_of, dims_of, families, frozen, shown
from pyshardy.core.axes import Dims
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.text import counted
from pyshardy.frontend.interface import InterfaceTensor, input_tensors
from pyshardy.ir.module import Module
from pyshardy.ir.named_values import sharding_of
from pyshardy.ir.op_lists import ops_named
from pyshardy.propagation.origins import CONSTRAINT
from pyshardy.report.diagnosis import FindingKind
from pyshardy.report.patch import merged_patches
from pyshardy.results.hints.code import Code
from pyshardy.source.assignments import read_lines
from pyshardy.source.constraining import SPECS
from pyshardy.source.meanings import is_literal, literal, name_of
from pyshardy.source.places import format_place
from pyshardy.source.syntax import syntax_tree

LARGE = 16
"""A dimension is worth splitting if a device gets so many of its elements."""
_TILE = 128
"""The elements that a chip computes at once in a dimension: tiles of TPUs, and blocks of products on GPUs."""
_LITTLE = 0.01
"""The share of a dimension that is little."""
_MOST_SIZES = 2
"""So many sizes are told."""
WHY = "a spec with an axis that does not divide a dimension is refused, or left out by a helper that looks for that"


class UnevenWeight(NamedTuple):
    """A weight that is whole along an axis which does not divide its largest dimension.

    Attributes:
        family: The weight.
        dim: The dimension.
        axis: The axis.
        shards: The parts of the dimension with the axis.
        is_used: Whether the axis splits other weights.
    """

    family: Family
    dim: int
    axis: str
    shards: int
    is_used: bool = True

    @property
    def size(self) -> int:
        """The size of the dimension."""
        return self.family.members[0].shape[self.dim]

    @property
    def multiple(self) -> int:
        """What the new size is a multiple of: the parts, and the tile of a chip if that adds little."""
        both = lcm(self.shards, _TILE)
        return both if self.size >= both / _LITTLE else self.shards


def uneven_weights(module: Module, mesh: Mesh) -> Iterator[UnevenWeight]:
    """The weights that are whole along an axis which does not divide their largest dimension.

    Args:
        module: The program.
        mesh: Its mesh.
    """
    sizes = {axis: size for axis, size in mesh.axes if size > 1}
    known = _known(module, sizes)
    used = {axis for family in known for axis in axes_of(family.members[0])}
    for family in known:
        shape = family.members[0].shape
        dim = max(range(len(shape)), key=lambda dim: shape[dim])
        for axis in [axis for axis in sizes if axis not in axes_of(family.members[0])]:
            shards = sizes[axis] * prod(sizes[one] for one in family.own[dim])
            if shape[dim] % sizes[axis] and shape[dim] >= LARGE * sizes[axis]:
                yield UnevenWeight(family, dim, axis, shards, axis in used)


def _known(module: Module, sizes: Mapping[str, int]) -> list[Family]:
    return [*families(module, sizes), *frozen(module, sizes)]


def what_is_whole(weights: Sequence[UnevenWeight]) -> str:
    """What is wrong with weights whose dimensions an axis does not divide, in words.

    Args:
        weights: The weights.
    """
    names, first = shown(one.family.name for one in weights), weights[0]
    others = ", which splits other weights" if first.is_used else ""
    sizes = [str(size) for size in _sizes(weights)]
    if len(sizes) > _MOST_SIZES:
        sizes[_MOST_SIZES:] = [counted(len(sizes) - _MOST_SIZES, "other size")]
    listed = " and ".join(filter(None, (", ".join(sizes[:-1]), sizes[-1])))
    return (
        f"{names} {'is' if len(weights) == 1 else 'are'} whole along {first.axis!r}{others}: its devices do not divide "
        f"dimension {first.dim} of {listed}"
    )


def _sizes(weights: Sequence[UnevenWeight]) -> dict[int, int]:
    """The new size of each dimension: the next that is divided."""
    multiples: dict[int, int] = {}
    for one in weights:
        multiples[one.size] = lcm(multiples.get(one.size, 1), one.multiple)
    return {size: -(-size // multiple) * multiple for size, multiple in multiples.items()}


def padding_cures(module: Module, mesh_name: str, mesh: Mesh) -> Iterator[Cure]:
    """The program with such dimensions padded, wherever it has their sizes, and these weights split along the axis.

    All weights that an axis could split are padded at once, and those of one size alone.

    Args:
        module: The program.
        mesh_name: The name of its mesh.
        mesh: Its mesh.
    """
    along: dict[str, list[UnevenWeight]] = {}
    for one in uneven_weights(module, mesh):
        along.setdefault(one.axis, []).append(one)
    held = sum(family.bytes for family in _known(module, dict(mesh.axes)))
    for weights in along.values():
        is_most = 2 * sum(one.family.bytes for one in weights) > held
        sizes = _sizes(weights)
        alone = [[one for one in weights if one.size == size] for size in sizes] if len(sizes) > 1 else []
        for group in (weights, *alone):
            yield _cure(module, mesh_name, group, is_design=not weights[0].is_used and not is_most)


def _cure(module: Module, mesh_name: str, group: Sequence[UnevenWeight], is_design: bool) -> Cure:
    files, sizes, axis = user_files(module.root), _sizes(group), group[0].axis
    sites = {size: [(file, node) for file in files for node in _sites(syntax_tree(file), size)] for size in sizes}
    known = {size: found[0] for size, found in sites.items() if len(found) == 1}
    places = [(file, node.lineno, node.col_offset) for file, node in known.values()]
    at = f" at {format_place(places[0])}" if places else ""
    old, padded = next(iter(sizes.items()))
    pad, also = f"pad {'the dimension' if len(sizes) == 1 else old} to {padded}{at}", ", and split it"
    if len(sizes) > 1:
        also = ", the other sizes alike, and split these dimensions"
    dims = {member.index: _split(member, one) for one in group for member in one.family.members}
    is_given = _is_left_out(module, group)
    return Cure(
        FindingKind.UNEVEN,
        what_is_whole(group),
        WHY,
        places[0] if places else None,
        f"{pad}{also} along {axis!r}",
        partial(_padded, sizes=sizes, dims=dims, mesh_name=mesh_name, axis=axis if is_given else ""),
        partial(_patch, module, known if len(known) == len(sizes) else {}, group, {} if is_given else dims, mesh_name),
        ("padded", axis, *sizes),
        is_exact=False,
        inputs=frozenset(dims),
        is_design=is_design,
    )


def _split(member: InterfaceTensor, one: UnevenWeight) -> Dims:
    dims = one.family.own if member.sharding is None else dims_of(member.sharding)
    return tuple((*axes, one.axis) if at == one.dim and one.axis not in axes else axes for at, axes in enumerate(dims))


def _padded(module: Module, sizes: Mapping[int, int], dims: Mapping[int, Dims], mesh_name: str, axis: str) -> Module:
    """The program with other sizes of all dimensions of some sizes.

    Where a helper leaves an axis out that does not divide, constraints on lines that name it have it then, too.

    Raises:
        InvalidModuleError: They are not the same dimensions.
    """
    pattern = rf"(?<=[ <x:\[])({'|'.join(map(str, sizes))})(?=[x>:,\]])"
    text = re.sub(pattern, lambda found: str(sizes[int(found[1])]), module.text(debug_info=True))
    allows = module.context.allow_unregistered_dialects
    found = Module.parse(text, name=module.name, allow_unregistered_dialects=allows)
    inputs = [one for one in input_tensors(found.root) if one.index in dims]
    found = annotated(found, [(one, sharding_of(dims[one.index], mesh_name)) for one in inputs])
    return _with_left_out(found, {*sizes.values()}, axis, mesh_name) if axis else found


def _with_left_out(module: Module, sizes: Collection[int], axis: str, mesh_name: str) -> Module:
    """The program with an axis in constraints that left it out of a dimension of some sizes."""
    root = module.copy_root()
    with module.context:
        for op in ops_named(root, (CONSTRAINT,)):
            given: TensorSharding = op.attrs["sharding"]
            new = [tuple(one.name for one in axes) for axes in given.dim_axes]
            whole = [dim for dim, one in enumerate(given.dims) if not one.axes and not one.is_open]
            free = [dim for dim in whole if (op.result.type.shape or ())[dim] in sizes]
            is_used = any(axis in axes for axes in new)
            if len(free) == 1 and not is_used and _is_named_at(Code.of(op, module.name), axis):
                new[free[0]] = (axis,)
                op.set_attr("sharding", sharding_of(tuple(new), mesh_name))
    return module.with_root(root)


def _is_named_at(code: Code, axis: str) -> bool:
    """Whether one of the lines that led to an op has the name of an axis."""
    quoted = f'"{axis}"', f"'{axis}'"
    return any(
        one in text for file, line, _ in code.path for text in read_lines(file)[line - 1 : line] for one in quoted
    )


def _sites(tree: ast.Module | None, size: int) -> Iterator[ast.expr]:
    """The places where a file writes a size, also as a sum or product of numbers."""
    todo: list[ast.AST] = [] if tree is None else [tree]
    while todo:
        node = todo.pop()
        value = literal(node) if isinstance(node, ast.Constant | ast.BinOp) and is_literal(node) else None
        if isinstance(node, ast.expr) and isinstance(value, int) and value == size:
            yield node
        else:
            todo += ast.iter_child_nodes(node)


def _is_left_out(module: Module, group: Sequence[UnevenWeight]) -> bool:
    """Whether a helper of the user's files leaves out the axis, because it does not divide these weights."""
    trees = [tree for file in user_files(module.root) if (tree := syntax_tree(file)) is not None]
    keys = {key for one in group for key in parts_of(one.family.members[0].name)[-1:]}
    return any(_is_given(tree, keys, group[0].axis) for tree in trees)


def _is_given(tree: ast.Module, keys: Collection[str], axis: str) -> bool:
    """Whether a helper of a file leaves out an axis that does not divide, of what has one of some names or of all.

    The file names the axis where it makes what has such a name, or in a spec of a function that tests a remainder.
    """
    made: list[ast.AST] = []
    for node in ast.walk(tree):
        match node:
            case ast.Dict():
                pairs = zip(node.keys, node.values)
                made += [value for key, value in pairs if isinstance(key, ast.Constant) and key.value in keys]
            case ast.keyword(arg=name, value=value) if name in keys:
                made.append(value)
            case ast.Assign(targets=[target], value=value) if name_of(target) in keys:
                made.append(value)
            case ast.FunctionDef() if any(map(_tests_remainder, ast.walk(node))):
                calls = (one for one in ast.walk(node) if isinstance(one, ast.Call))
                made += [one for one in calls if name_of(one.func) in SPECS]
    return any(isinstance(one, ast.Constant) and one.value == axis for value in made for one in ast.walk(value))


def _tests_remainder(node: ast.AST) -> bool:
    """Whether a condition has a remainder."""
    tested = ast.walk(node.test) if isinstance(node, ast.If | ast.IfExp) else ()
    return any(isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mod) for one in tested)


def _patch(
    module: Module,
    sites: Mapping[int, tuple[str, ast.expr]],
    group: Sequence[UnevenWeight],
    dims: Mapping[int, Dims],
    mesh_name: str,
) -> str:
    """A diff of the sizes, and of specs that lack the axis; a helper may leave it out of one that has it."""
    if not sites or any(node.lineno != node.end_lineno for _, node in sites.values()):
        return ""
    texts: dict[str, dict[tuple[int, int, int], str]] = {}
    for size, padded in _sizes(group).items():
        file, node = sites[size]
        multiple = lcm(*(one.multiple for one in group if one.size == size))
        text = _code_of(file, node, padded, multiple)
        texts.setdefault(file, {})[node.lineno, node.col_offset, node.end_col_offset or 0] = text
    changed = [replaced_all(file, new) for file, new in texts.items()]
    members = {one.index: one for one in input_tensors(module.root)}
    specs = [(members[index], sharding_of(new, mesh_name)) for index, new in dims.items()]
    return merged_patches([*changed, annotation_patch(module, specs)] if specs else changed)


def _code_of(file: str, node: ast.expr, size: int, multiple: int) -> str:
    """A new size as code: a number as the user writes numbers, or the next multiple of what is computed."""
    if not isinstance(node, ast.Constant):
        return f"-(-({ast.unparse(node)}) // {multiple}) * {multiple}"
    written = read_lines(file)[node.lineno - 1][node.col_offset : node.end_col_offset]
    return f"{size:_}" if "_" in written else f"{size}"
