"""Cures for weights, their optimizer state and caches that are whole along an axis that splits others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

from pyshardy.checkup.cures import Cure
from pyshardy.checkup.kinds.ports import annotation_cure, annotation_patch
from pyshardy.checkup.patching.helper_specs import like_weights_patch
from pyshardy.checkup.patching.source import user_files
from pyshardy.checkup.program.annotating import OtherInputs
from pyshardy.checkup.program.families import Family, axes_of, dims_of, families, frozen, split_further
from pyshardy.checkup.program.keras_paths import told_name
from pyshardy.core.axes import Dims
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.spec import format_spec
from pyshardy.frontend.interface import InterfaceTensor, input_tensors
from pyshardy.ir.module import Module
from pyshardy.ir.named_values import sharding_of
from pyshardy.ir.source_values import is_differentiated
from pyshardy.report.diagnosis import FindingKind
from pyshardy.results.hints.edits import AnnotationEdit, spec_text

_MOST_FAMILIES, _MOST_WAYS = 4, 2
"""The number of weights that are tried, with all layers as one, and of the dimensions for each axis."""


def state_cures(module: Module, mesh_name: str, mesh: Mesh) -> Iterator[Cure]:
    """The largest weights and caches that are whole along an axis that splits others, split along it.

    In training, an axis that splits no weight is one of the batch alone, by design.

    Args:
        module: The program.
        mesh_name: The name of its mesh.
        mesh: Its mesh.
    """
    sizes = {axis: size for axis, size in mesh.axes if size > 1}
    found = sorted([*families(module, sizes), *frozen(module, sizes)], key=lambda one: -one.bytes)
    inputs = input_tensors(module.root)
    served = set() if is_differentiated(module.root) else {axis for one in inputs for axis in axes_of(one)}
    yield from _like_weights(module, found, mesh_name)
    for family in found[:_MOST_FAMILIES]:
        others = {axis for one in found if one is not family for axes in one.dims for axis in axes} | served
        used = {axis for axes in family.dims for axis in axes}
        free = [axis for axis in sizes if axis in others - used]
        for axes, way in _ways(family, free, sizes):
            edit = AnnotationEdit(True, tuple(one.index for one in family.weights), sharding_of(way, mesh_name))
            given, names = spec_text(family.members[0]), " and ".join(f'"{axis}"' for axis in axes)
            yield replace(
                annotation_cure(module, edit, inputs, "", None, family.members[len(family.weights) :]),
                kind=FindingKind.STATE,
                what=f"`{family.name}` is {given}, so every device along {names} holds all of it",
                why=f"{names} {'splits' if len(axes) == 1 else 'split'} other inputs",
            )


def _ways(family: Family, free: Sequence[str], sizes: Mapping[str, int]) -> Iterator[tuple[tuple[str, ...], Dims]]:
    """A weight split along one of some axes; for one that is whole also along two."""
    shape = family.members[0].shape
    for axis in free:
        yield from (((axis,), way) for way in split_further(shape, family.dims, axis, sizes)[:_MOST_WAYS])
    for pair in combinations(free, 2) if not any(family.dims) else ():
        one = split_further(shape, family.dims, pair[0], sizes)
        both = [way for first in one for way in split_further(shape, first, pair[1], sizes)]
        yield from ((pair, way) for way in [way for way in both if max(map(len, way)) == 1][:_MOST_WAYS])


def _like_weights(module: Module, found: Sequence[Family], mesh_name: str) -> Iterator[Cure]:
    """All optimizer state that is split less than its weight, as that weight."""
    pairs = [
        (one, sharding_of(family.own, mesh_name))
        for family in found
        for one in family.members
        if set(axes_of(one)) < set(axes_of(family.weights[0]))
    ]
    if not pairs:
        return
    first, sharding = pairs[0]
    wanted, name = format_spec(dims_of(sharding)), told_name(module, first)
    weight = next(family.name for family in found if first in family.members)
    weights = [one for family in found for one in family.weights]
    more = f", and {len(pairs) - 1} more alike" if len(pairs) > 1 else ""
    yield Cure(
        FindingKind.STATE,
        f"`{name}` is {spec_text(first)}, and `{weight}`, which it belongs to, is {wanted}{more}",
        "what a device holds of it is larger than what it holds of the weight",
        None,
        f"annotate `{name}` as {wanted}{more}",
        OtherInputs(pairs),
        partial(_state_patch, module, pairs, weights),
        "optimizer state",
        inputs=frozenset(one.index for one, _ in pairs),
    )


def _state_patch(
    module: Module, pairs: Sequence[tuple[InterfaceTensor, TensorSharding]], weights: Sequence[InterfaceTensor]
) -> str:
    """The other specs of optimizer state in the user's source; or the function that chooses those of its weights."""
    own = [one for one, _ in pairs]
    return annotation_patch(module, pairs) or like_weights_patch(user_files(module.root), own, weights)
