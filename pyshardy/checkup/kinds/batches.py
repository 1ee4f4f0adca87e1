"""Cures at what a step does not return, such as its batch: another dimension for its axes, or one axis more."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations
from math import prod

from pyshardy.checkup.cures import Cure
from pyshardy.checkup.kinds.ports import annotation_cure, are
from pyshardy.checkup.patching.source import replaced, user_files
from pyshardy.checkup.program.families import axes_of, dims_of, split_further
from pyshardy.checkup.program.ties import unreturned
from pyshardy.core.alike import general
from pyshardy.core.axes import Dims
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.spec import format_spec
from pyshardy.frontend.interface import InterfaceTensor, input_tensors
from pyshardy.ir.dtypes import known_bytes
from pyshardy.ir.module import Module
from pyshardy.ir.named_values import sharding_of
from pyshardy.ir.op_lists import ops_named
from pyshardy.propagation.origins import CONSTRAINT
from pyshardy.report.diagnosis import FindingKind
from pyshardy.report.rules import without_end
from pyshardy.results.hints.edits import AnnotationEdit, spec_text
from pyshardy.searching.autopartition.space import are_equal_shards
from pyshardy.source.syntax import syntax_tree

_MANUAL = "sdy.manual_computation"
_KERAS_BATCH = "batch_dim_name"

_MOST_WHOLE, _MOST_WAYS = 3, 2
"""The number of groups of inputs that are split along one axis more, and of the dimensions that are tried for each."""


def batch_cures(module: Module, mesh_name: str, mesh: Mesh) -> Iterator[Cure]:
    """The largest inputs that a step does not return, such as a batch, split along one axis more, or otherwise.

    What a step returns anew, such as weights, may be whole by design: every device then keeps all of it.

    Args:
        module: The program.
        mesh_name: The name of its mesh.
        mesh: Its mesh.
    """
    inputs, sizes = input_tensors(module.root), {axis: size for axis, size in mesh.axes if size > 1}
    free = unreturned(module)
    alike: dict[tuple[str, TensorSharding], list[InterfaceTensor]] = {}
    for one in free:
        given = one.sharding
        if given is not None and given.rank and all(axis.is_full for axes in given.dim_axes for axis in axes):
            alike.setdefault((general(one.name), given), []).append(one)
    largest = sorted(alike.items(), key=lambda item: -_held(item[1], mesh))
    groups = [(dims_of(given), members) for (_, given), members in largest[:_MOST_WHOLE]]
    rows = [(dims[:1], members) for dims, members in _by_spec(free, sizes) if len(dims) == 1 < len(members)]
    for dims, members in [*rows, *groups]:
        used, indices = {axis for axes in dims for axis in axes}, tuple(one.index for one in members)
        for axis in [axis for axis in sizes if axis not in used]:
            ways = split_further(members[0].shape[: len(dims)], dims, axis, sizes)[:_MOST_WAYS]
            for way in [way for way in ways if all(are_equal_shards(one.shape, way, sizes) for one in members)]:
                edit = AnnotationEdit(True, indices, sharding_of(way, mesh_name))
                read = f"{are(module, members)} {spec_text(members[0])}"
                what = f'{read}, so every device along "{axis}" holds and reads all'
                cure = annotation_cure(module, edit, inputs, "", None)
                yield replace(cure, kind=FindingKind.LAYOUT, what=what, is_design=True)
    yield from _moved_batches(module, free, mesh_name, sizes)
    yield from _idle_axes(module, free, mesh_name, sizes)


def _idle_axes(
    module: Module, free: Sequence[InterfaceTensor], mesh_name: str, sizes: Mapping[str, int]
) -> Iterator[Cure]:
    """The inputs of a batch split along an axis that splits nothing else, beside their own axis or instead of it."""
    used = {axis for one in input_tensors(module.root) for axis in axes_of(one)}
    for op in ops_named(module.root, (CONSTRAINT, _MANUAL)):
        given = (
            [op.attrs["sharding"]] if op.name == CONSTRAINT else [*op.attrs["in_shardings"], *op.attrs["out_shardings"]]
        )
        used |= {axis for one in given for axes in dims_of(one) for axis in axes}
    keras = _batch_dim_name(module)
    for axis in [axis for axis in sizes if axis not in used]:
        for dims, members in _by_spec(free, sizes):
            ways = [_instead(dims, old, (axis,)) for axes in dims for old in axes]
            ways += [] if keras else [_instead(dims, axes[-1], (axes[-1], axis)) for axes in dims if axes]
            for way in ways:
                if all(are_equal_shards(one.shape, way, sizes) for one in members):
                    edit = AnnotationEdit(True, tuple(one.index for one in members), sharding_of(way, mesh_name))
                    what = f'nothing is split along "{axis}", so its {sizes[axis]} devices hold and compute the same'
                    cure = annotation_cure(module, edit, members, "", None)
                    make_patch = partial(replaced, *keras, repr(axis)) if keras else cure.make_patch
                    place = (*keras[:2], keras[2]) if keras else None
                    kind = FindingKind.LAYOUT
                    yield replace(cure, kind=kind, what=what, place=place, make_patch=make_patch, is_design=False)


def _instead(dims: Dims, old: str, new: tuple[str, ...]) -> Dims:
    """Axes with others in the place of one.

    >>> _instead((("x",), ()), "x", ("x", "y"))
    (('x', 'y'), ())
    """
    return tuple(tuple(more for axis in axes for more in (new if axis == old else (axis,))) for axes in dims)


def _batch_dim_name(module: Module) -> tuple[str, int, int, int] | None:
    """Where a program that keras distributes says by which axis the batch is split: file, line and columns."""
    for file in user_files(module.root):
        tree = syntax_tree(file)
        for call in () if tree is None else ast.walk(tree):
            for word in call.keywords if isinstance(call, ast.Call) else ():
                if word.arg == _KERAS_BATCH and word.value.lineno == word.value.end_lineno:
                    return file, word.value.lineno, word.value.col_offset, word.value.end_col_offset or 0
    return None


def _moved_batches(
    module: Module, free: Sequence[InterfaceTensor], mesh_name: str, sizes: Mapping[str, int]
) -> Iterator[Cure]:
    """The inputs of one spec with an axis on another dimension, all at once of which as long a dimension is split.

    A rollout that is split along time is not as a batch of sequences.
    """
    for dims, members in _by_spec([one for one in free if len(one.shape) > 1], sizes, by_size=True):
        rank = min(len(one.shape) for one in members)
        for way in _exchanged((*dims, *[()] * (rank - len(dims)))):
            if all(are_equal_shards(one.shape, way, sizes) for one in members):
                edit = AnnotationEdit(True, tuple(one.index for one in members), sharding_of(way, mesh_name))
                read = f"{are(module, members)} {spec_text(members[0])}"
                what = f"{read}, and what reads it is better off with {format_spec(way)}"
                yield replace(annotation_cure(module, edit, members, "", None), what=what)


def _by_spec(
    free: Sequence[InterfaceTensor], sizes: Mapping[str, int], by_size: bool = False
) -> list[tuple[Dims, list[InterfaceTensor]]]:
    """The inputs that are split, by their axes, and by the sizes of what these split; those of most inputs first."""
    found: dict[tuple[Dims, tuple[int, ...]], list[InterfaceTensor]] = {}
    for one in free:
        if one.sharding is not None and axes_of(one) and set(axes_of(one)) <= sizes.keys():
            dims = without_end(dims_of(one.sharding))
            split = tuple(size for size, axes in zip(one.shape, dims) if axes) if by_size else ()
            found.setdefault((dims, split), []).append(one)
    largest = sorted(found.items(), key=lambda item: -len(item[1]))[:_MOST_WHOLE]
    return [(dims, members) for (dims, _), members in largest]


def _exchanged(dims: Dims) -> Iterator[Dims]:
    """The axes of a dimension on another one that has none.

    >>> list(_exchanged((("x", "y"), ())))
    [((), ('x', 'y'))]
    """
    for old, new in permutations(range(len(dims)), 2):
        if dims[old] and not dims[new]:
            yield tuple(dims[old] if dim == new else () if dim == old else axes for dim, axes in enumerate(dims))


def _held(members: Sequence[InterfaceTensor], mesh: Mesh) -> float:
    """The bytes that a device holds of some inputs."""
    one = members[0]
    sizes = dict(mesh.axes)
    parts = prod(sizes[axis] for axes in dims_of(one.sharding) for axis in axes) if one.sharding is not None else 1
    return len(members) * known_bytes(one.shape, one.element) / parts
