"""Cures of weights with a dimension that an axis does not divide: the dimension padded, as a vocabulary may be."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from math import lcm, prod
from typing import NamedTuple

from pyshardy.checkup.annotating import annotated
from pyshardy.checkup.cures import Cure
from pyshardy.checkup.families import Family, axes_of, dims_of, families, frozen, shown
from pyshardy.checkup.ports import annotation_patch
from pyshardy.checkup.source import replaced, user_files
from pyshardy.checkup.written_specs import parts_of
from pyshardy.core.axes import Dims
from pyshardy.core.mesh import Mesh
from pyshardy.frontend.interface import InterfaceTensor, input_tensors
from pyshardy.ir.module import Module
from pyshardy.ir.named_values import sharding_of
from pyshardy.report.diagnosis import FindingKind
from pyshardy.report.patch import merged_patches
from pyshardy.source.meanings import is_literal, literal, name_of
from pyshardy.source.places import format_place
from pyshardy.source.syntax import syntax_tree

LARGE = 16
"""A dimension is worth splitting if a device gets so many of its elements."""
_TILE = 128
"""The elements that a chip computes at once in a dimension: tiles of TPUs, and blocks of products on GPUs."""
_LITTLE = 0.01
"""The share of a dimension that is little."""
WHY = "a spec with an axis that does not divide a dimension is refused, or left out by a helper that looks for that"


class UnevenWeight(NamedTuple):
    """A weight that is whole along an axis which splits others and does not divide its largest dimension.

    Attributes:
        family: The weight.
        dim: The dimension.
        axis: The axis.
        shards: The parts of the dimension with the axis.
    """

    family: Family
    dim: int
    axis: str
    shards: int

    @property
    def size(self) -> int:
        """The size of the dimension."""
        return self.family.members[0].shape[self.dim]

    @property
    def multiple(self) -> int:
        """What the new size is a multiple of: the parts, and the tile of a chip if that adds little."""
        both = lcm(self.shards, _TILE)
        return both if self.size >= both / _LITTLE else self.shards

    @property
    def padded(self) -> int:
        """The next size that the axis divides."""
        return -(-self.size // self.multiple) * self.multiple


def uneven_weights(module: Module, mesh: Mesh) -> Iterator[UnevenWeight]:
    """The weights that are whole along an axis which splits others and does not divide their largest dimension.

    Args:
        module: The program.
        mesh: Its mesh.
    """
    sizes = {axis: size for axis, size in mesh.axes if size > 1}
    known = [*families(module, sizes), *frozen(module, sizes)]
    used = {axis for family in known for axis in axes_of(family.members[0])}
    for family in known:
        shape = family.members[0].shape
        dim = max(range(len(shape)), key=lambda dim: shape[dim])
        for axis in [axis for axis in sizes if axis in used and axis not in axes_of(family.members[0])]:
            shards = sizes[axis] * prod(sizes[one] for one in family.own[dim])
            if shape[dim] % sizes[axis] and shape[dim] >= LARGE * sizes[axis]:
                yield UnevenWeight(family, dim, axis, shards)


def what_is_whole(weights: Sequence[UnevenWeight]) -> str:
    """What is wrong with weights whose dimensions of one size an axis does not divide, in words.

    Args:
        weights: The weights.
    """
    names, first = shown(one.family.name for one in weights), weights[0]
    return (
        f"{names} {'is' if len(weights) == 1 else 'are'} whole along {first.axis!r}, which splits other weights: its "
        f"devices do not divide dimension {first.dim} of {first.size}"
    )


def padding_cures(module: Module, mesh_name: str, mesh: Mesh) -> Iterator[Cure]:
    """The program with such a dimension padded, wherever it has this size, and these weights split along the axis.

    Args:
        module: The program.
        mesh_name: The name of its mesh.
        mesh: Its mesh.
    """
    groups: dict[tuple[int, int, str], list[UnevenWeight]] = {}
    for one in uneven_weights(module, mesh):
        groups.setdefault((one.size, one.padded, one.axis), []).append(one)
    for (size, padded, axis), group in groups.items():
        files = user_files(module.root)
        sites = [(file, node) for file in files for node in _sites(syntax_tree(file), size)]
        site = sites[0] if len(sites) == 1 else None
        place = None if site is None else (site[0], site[1].lineno, site[1].col_offset)
        dims = {member.index: _split(member, one) for one in group for member in one.family.members}
        at = "" if place is None else f" at {format_place(place)}"
        yield Cure(
            FindingKind.UNEVEN,
            what_is_whole(group),
            WHY,
            place,
            f"pad the dimension to {padded}{at}, and split it along {axis!r}",
            partial(_padded, size=size, padded=padded, dims=dims, mesh_name=mesh_name),
            partial(_patch, module, site, group, dims, mesh_name),
            ("padded", size, axis),
            is_exact=False,
            inputs=frozenset(dims),
        )


def _split(member: InterfaceTensor, one: UnevenWeight) -> Dims:
    dims = one.family.own if member.sharding is None else dims_of(member.sharding)
    return tuple((*axes, one.axis) if at == one.dim and one.axis not in axes else axes for at, axes in enumerate(dims))


def _padded(module: Module, size: int, padded: int, dims: Mapping[int, Dims], mesh_name: str) -> Module:
    """The program with another size of all dimensions of one size.

    Raises:
        InvalidModuleError: They are not the same dimension.
    """
    text = re.sub(rf"(?<=[ <x:\[]){size}(?=[x>:,\]])", str(padded), module.text(debug_info=True))
    allows = module.context.allow_unregistered_dialects
    found = Module.parse(text, name=module.name, allow_unregistered_dialects=allows)
    inputs = [one for one in input_tensors(found.root) if one.index in dims]
    return annotated(found, [(one, sharding_of(dims[one.index], mesh_name)) for one in inputs])


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


def _is_given(tree: ast.Module, keys: Collection[str], axis: str) -> bool:
    """Whether a file names an axis where it makes what has one of some names: a helper then leaves it out."""
    made: list[ast.expr] = []
    for node in ast.walk(tree):
        match node:
            case ast.Dict():
                pairs = zip(node.keys, node.values)
                made += [value for key, value in pairs if isinstance(key, ast.Constant) and key.value in keys]
            case ast.keyword(arg=name, value=value) if name in keys:
                made.append(value)
            case ast.Assign(targets=[target], value=value) if name_of(target) in keys:
                made.append(value)
    return any(isinstance(one, ast.Constant) and one.value == axis for value in made for one in ast.walk(value))


def _patch(
    module: Module,
    site: tuple[str, ast.expr] | None,
    group: Sequence[UnevenWeight],
    dims: Mapping[int, Dims],
    mesh_name: str,
) -> str:
    """A diff of the size, and of specs that lack the axis; a helper may leave it out of one that has it."""
    if site is None or site[1].lineno != site[1].end_lineno:
        return ""
    file, node = site
    first = group[0]
    text = str(first.padded)
    if not isinstance(node, ast.Constant):
        text = f"-(-({ast.unparse(node)}) // {first.multiple}) * {first.multiple}"
    size = replaced(file, node.lineno, node.col_offset, node.end_col_offset or 0, text)
    members = {one.index: one for one in input_tensors(module.root)}
    trees = [tree for file in user_files(module.root) if (tree := syntax_tree(file)) is not None]
    keys = {key for one in group for key in parts_of(one.family.members[0].name)[-1:]}
    if any(_is_given(tree, keys, first.axis) for tree in trees):
        return size
    changed = [(members[index], sharding_of(new, mesh_name)) for index, new in dims.items()]
    return merged_patches([size, annotation_patch(module, changed)])
