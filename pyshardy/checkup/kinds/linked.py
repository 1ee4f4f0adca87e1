"""Cures of many weights at once. Weights that are whole along an axis are split so that each passes the axis on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import prod

from pyshardy.checkup.cures import Cure
from pyshardy.checkup.kinds.ports import annotation_patch
from pyshardy.checkup.program.annotating import OtherInputs
from pyshardy.checkup.program.families import Family, axes_of, dims_of, families, frozen, shown, split_further
from pyshardy.core.axes import Dims
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.core.spec import format_spec
from pyshardy.frontend.interface import InterfaceTensor
from pyshardy.ir.module import Module
from pyshardy.ir.named_values import sharding_of
from pyshardy.ir.source_values import is_differentiated
from pyshardy.report.diagnosis import FindingKind

_MOST_TRIES = 10
"""The programs that are propagated for each axis, to see which weights belong together."""
_MOST_GROUPS = 2
"""The weights that are tried alone with those that take up their axis, beside all of them."""
_SMALL = 64
"""A weight that is this many times smaller than the largest one, such as the scale of a norm, is left as it is."""
ShardingsOf = Callable[[OtherInputs], Mapping[int, TensorSharding | None]]
_Ways = dict[int, Dims]
"""The axes of weights by their place in a list."""


def linked_cures(module: Module, mesh_name: str, mesh: Mesh, shardings_of: ShardingsOf) -> Iterator[Cure]:
    """The weights that are whole along an axis which splits others, split along it together.

    One alone would make devices communicate: a layer's second product takes up the axis that its first one leaves.

    Args:
        module: The program.
        mesh_name: The name of its mesh.
        mesh: Its mesh.
        shardings_of: The shardings of its inputs after propagation, by their numbers, if some have others before.
    """
    sizes = {axis: size for axis, size in mesh.axes if size > 1}
    returned, kept = list(families(module, sizes)), list(frozen(module, sizes))
    known = [one for one in [*returned, *kept] if len(one.members[0].shape) > 1]
    known = [one for one in known if _size(one) * _SMALL >= max(map(_size, known))]
    weights = returned if is_differentiated(module.root) else kept or returned
    for axis in sizes:
        whole = [one for one in known if axis not in axes_of(one.members[0])]
        if len(whole) < 2 or all(axis not in axes_of(one.members[0]) for one in weights if one in known):
            continue
        largest = sorted(whole, key=lambda one: -one.bytes)
        for is_wide in (False, True):
            usual = Counter(place for one in known for place in _places(one, axis))
            groups = list(_groups(largest, axis, mesh_name, sizes, is_wide, shardings_of, usual))
            every = [way for group in groups for way in group]
            for ways in [every, *groups[:_MOST_GROUPS]] if len(groups) > 1 else groups:
                if len(ways) > 1:
                    yield _cure(module, ways, axis, mesh_name)


def _places(one: Family, axis: str) -> list[tuple[int, int]]:
    """The rank of a weight and the dimension that an axis splits, if it splits one."""
    return [(len(one.own), dim) for dim, axes in enumerate(one.own) if axis in axes]


def _dim(dims: Dims, axis: str) -> int:
    return next(dim for dim, axes in enumerate(dims) if axis in axes)


def _size(one: Family) -> int:
    return len(one.weights) * prod(one.members[0].shape)


def _groups(
    whole: Sequence[Family],
    axis: str,
    mesh_name: str,
    sizes: Mapping[str, int],
    is_wide: bool,
    shardings_of: ShardingsOf,
    usual: Mapping[tuple[int, int], int],
) -> Iterator[list[tuple[Family, Dims]]]:
    """The weights that get an axis, and how: each with those that take it up.

    For each weight the dimension is chosen by how many other weights take up its axis. Usually it is the smallest
    number above 0: the next product of a layer. With `is_wide` it is the largest: an axis of values to which all layers
    add. Of several, it is the one on which the axis is usual.
    """
    found: _Ways = {}
    tries = 0
    choose = max if is_wide else min
    for place, family in enumerate(whole):
        if place in found:
            continue
        tried: list[_Ways] = []
        for way in split_further(family.members[0].shape, family.own, axis, sizes)[::-1]:
            if tries < _MOST_TRIES:
                tries += 1
                tried.append(_taken_up(whole, {**found, place: way}, axis, mesh_name, shardings_of))
        linked = [ways for ways in tried if len(ways) > len(found) + 1] or tried
        if linked:
            linked.sort(key=lambda ways: -usual.get((len(ways[place]), _dim(ways[place], axis)), 0))
            ways = choose(linked, key=lambda ways: sum(whole[at].bytes for at in ways))
            yield [(whole[place], dims) for place, dims in ways.items() if place not in found]
            found = ways


def _taken_up(whole: Sequence[Family], given: _Ways, axis: str, mesh_name: str, shardings_of: ShardingsOf) -> _Ways:
    """The weights to which propagation brings an axis from those that are given it."""
    pairs = []
    for place, family in enumerate(whole):
        own = sharding_of(given.get(place, family.own), mesh_name)
        dims = [DimSharding(dim.axes, place not in given) for dim in own.dims]
        pairs += [(one, TensorSharding(mesh_name, dims)) for one in family.members]
    shardings = shardings_of(OtherInputs(pairs))
    found = dict(given)
    for place, family in enumerate(whole):
        sharding = next((shardings[one.index] for one in family.weights if one.index in shardings), None)
        if place not in given and sharding is not None and sharding.rank == len(family.own):
            for dim in [dim for dim, axes in enumerate(dims_of(sharding)) if axis in axes]:
                found[place] = _with(family.own, dim, axis)
    return found


def _with(dims: Dims, dim: int, axis: str) -> Dims:
    return tuple((*axes, axis) if at == dim else axes for at, axes in enumerate(dims))


def _cure(module: Module, ways: Sequence[tuple[Family, Dims]], axis: str, mesh_name: str) -> Cure:
    pairs: list[tuple[InterfaceTensor, TensorSharding]] = []
    specs: dict[str, list[str]] = {}
    for family, dims in ways:
        own = [one for one in family.members if one.sharding == family.members[0].sharding]
        pairs += [(one, sharding_of(dims, mesh_name)) for one in own]
        specs.setdefault(format_spec(dims), []).append(family.name)
    names = shown(family.name for family, _ in ways)
    text = ", ".join(f"{shown(of)} as {spec}" for spec, of in specs.items())
    return Cure(
        FindingKind.STATE,
        f'{names} are whole along "{axis}", so its devices hold and compute the same',
        f'"{axis}" splits other inputs',
        None,
        f"annotate {text}",
        OtherInputs(pairs),
        partial(annotation_patch, module, pairs),
        inputs=frozenset(one.index for one, _ in pairs),
    )
