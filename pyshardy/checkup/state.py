"""Cures for weights, their optimizer state and caches that are whole along an axis that splits others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from math import prod
from typing import NamedTuple

from pyshardy.checkup.cures import Cure
from pyshardy.checkup.ports import annotated, annotation_cure, annotation_patch, dims_of, ties_in
from pyshardy.core.alike import common, general
from pyshardy.core.axes import Dims
from pyshardy.core.mesh import Mesh
from pyshardy.core.spec import format_spec
from pyshardy.frontend.interface import InterfaceTensor, input_tensors
from pyshardy.ir.dtypes import known_bytes
from pyshardy.ir.module import Module
from pyshardy.ir.named_values import sharding_of
from pyshardy.report.diagnosis import FindingKind
from pyshardy.results.hints.edits import AnnotationEdit, spec_text
from pyshardy.searching.autopartition.space import are_equal_shards

_KEYS = re.compile(r"\[[^\]]*\]|[^\[.]+")
_HEADS = 2
"""The most keys of a weight's name that its optimizer state does not share, as in `state.params['w']`."""
_MOST_FAMILIES, _MOST_WAYS = 4, 2
"""The number of weights that are tried, with all layers as one, and of the dimensions for each axis."""


class _Family(NamedTuple):
    """A weight of all layers with its optimizer state, or a cache.

    Attributes:
        name: The name of the weight.
        members: All inputs, those of the weight first.
        dims: The axes of those that are split most.
        bytes: What a device holds of all.
    """

    name: str
    members: tuple[InterfaceTensor, ...]
    dims: Dims
    bytes: float


def state_cures(module: Module, mesh_name: str, mesh: Mesh) -> Iterator[Cure]:
    """The largest weights and caches that are whole along an axis that splits others, split along it.

    An axis that splits no weight is one of the batch alone, by design.

    Args:
        module: The program.
        mesh_name: The name of its mesh.
        mesh: Its mesh.
    """
    sizes = {axis: size for axis, size in mesh.axes if size > 1}
    families = sorted(_families(module, sizes), key=lambda one: -one.bytes)
    inputs = input_tensors(module.root)
    yield from _like_weights(module, families, mesh_name)
    for family in families[:_MOST_FAMILIES]:
        others = {axis for one in families if one is not family for axes in one.dims for axis in axes}
        used = {axis for axes in family.dims for axis in axes}
        state = any(general(one.name) != general(family.members[0].name) for one in family.members)
        for axis in [axis for axis in sizes if axis in others - used]:
            for way in _split(family, axis, sizes):
                edit = AnnotationEdit(True, tuple(one.index for one in family.members), sharding_of(way, mesh_name))
                given = spec_text(family.members[0])
                also = ", and its optimizer state" if state else ""
                yield replace(
                    annotation_cure(module, edit, inputs, "", None),
                    kind=FindingKind.STATE,
                    what=f'`{family.name}` is {given}, so every device along "{axis}" holds all of it',
                    why=f'"{axis}" splits other weights',
                    text=f"annotate `{family.name}` as {format_spec(way)}{also}",
                )


def _like_weights(module: Module, families: Sequence[_Family], mesh_name: str) -> Iterator[Cure]:
    """All optimizer state that is split less than its weight, as that weight."""
    pairs = [
        (one, sharding_of(_dims(family.members[0]), mesh_name))
        for family in families
        for one in family.members
        if set(_axes(one)) < set(_axes(family.members[0]))
    ]
    if not pairs:
        return
    first, sharding = pairs[0]
    wanted = format_spec(dims_of(sharding))
    weight = next(family.name for family in families if first in family.members)
    more = f", and {len(pairs) - 1} more alike" if len(pairs) > 1 else ""
    yield Cure(
        FindingKind.STATE,
        f"`{first.name}` is {spec_text(first)}, and `{weight}`, which it belongs to, is {wanted}{more}",
        "what a device holds of it is larger than what it holds of the weight",
        None,
        f"annotate `{first.name}` as {wanted}{more}",
        partial(annotated, pairs=pairs),
        partial(annotation_patch, module, pairs),
        "optimizer state",
    )


def _families(module: Module, sizes: dict[str, int]) -> Iterator[_Family]:
    """The inputs that a step returns anew, by the weight that they belong to."""
    ties = ties_in(module)
    inputs = [one for place, one in enumerate(input_tensors(module.root)) if place in ties and one.shape]
    inputs = [one for one in inputs if one.sharding is not None and all(axis in sizes for axis in _axes(one))]
    found: dict[tuple[str, tuple[int, ...]], list[InterfaceTensor]] = {}
    for one in sorted(inputs, key=lambda one: len(_KEYS.findall(one.name))):
        name = general(one.name)
        own = (key for key in found if key[1] == one.shape and _belongs(name, key[0]))
        found.setdefault(next(own, (name, one.shape)), []).append(one)
    for (name, _), members in found.items():
        dims = max(map(_dims, members), key=lambda one: prod(sizes[axis] for axes in one for axis in axes))
        held = sum(known_bytes(one.shape, one.element) / prod(sizes[axis] for axis in _axes(one)) for one in members)
        yield _Family(common(one.name for one in members if general(one.name) == name), tuple(members), dims, held)


def _belongs(name: str, weight: str) -> bool:
    """Whether a name ends as that of a weight, without the weight's first keys.

    >>> _belongs("state[0].mu['up']", "params['up']"), _belongs("params['down']", "params['up']")
    (True, False)
    >>> _belongs("optimizer['adam/block_*_up_kernel_momentum']", "model['block_*/up/kernel']")
    True
    """
    path = _last_key(weight)
    if "/" in path and f"{path.replace('/', '_')}_" in _last_key(name):  # as keras names its variables
        return True
    one, other = (_KEYS.findall(text)[::-1] for text in (name, weight))
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other)))
    return shared >= max(1, len(other) - _HEADS)


def _last_key(name: str) -> str:
    return str(_KEYS.findall(name)[-1]).strip("[']")


def _split(family: _Family, axis: str, sizes: dict[str, int]) -> list[Dims]:
    """The axes of a family with one more, at each dimension that it divides."""
    shape = family.members[0].shape
    ways = [
        tuple((*axes, axis) if at == dim else axes for at, axes in enumerate(family.dims)) for dim in range(len(shape))
    ]
    return [way for way in ways if are_equal_shards(shape, way, sizes)][:_MOST_WAYS]


def _dims(one: InterfaceTensor) -> Dims:
    return () if one.sharding is None else dims_of(one.sharding)


def _axes(one: InterfaceTensor) -> Sequence[str]:
    return [axis for axes in _dims(one) for axis in axes]
