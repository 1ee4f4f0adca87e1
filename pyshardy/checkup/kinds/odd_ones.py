"""Cures of weights that are annotated otherwise than those beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from pyshardy.checkup.cures import Cure
from pyshardy.checkup.kinds.ports import annotation_cure, are
from pyshardy.checkup.program.families import Family, families, frozen
from pyshardy.checkup.program.partners import Partners
from pyshardy.core.mesh import Mesh
from pyshardy.frontend.interface import InterfaceTensor, input_tensors
from pyshardy.ir.module import Module
from pyshardy.results.hints.edits import AnnotationEdit, spec_text

_MOST = 8
"""The most weights that are tried, the largest first."""


def odd_cures(module: Module, mesh: Mesh) -> Iterator[Cure]:
    """Weights annotated as those that are multiplied with the same value, or as the same weight of most layers.

    A mistake in one of several lines is one of a single projection, or of a single layer.

    Args:
        module: The program.
        mesh: Its mesh.
    """
    sizes = dict(mesh.axes)
    inputs, partners = input_tensors(module.root), Partners(module)
    known = [one for one in [*families(module, sizes), *frozen(module, sizes)] if len(one.members[0].shape) > 1]
    found = [*_odd_layers(known), *_odd_partners(known, partners)]
    for odd, usual, reason in sorted(found, key=lambda one: -_size(one[0]))[:_MOST]:
        sharding = usual[0].sharding
        if sharding is None:
            continue
        edit = AnnotationEdit(True, tuple(one.index for one in odd), sharding)
        cure = annotation_cure(module, edit, inputs, "", None, _state(known, odd))
        what = f"{are(module, odd)} {spec_text(odd[0])}, and {are(module, usual)} {spec_text(usual[0])}"
        yield replace(cure, what=what, why=reason, is_design=False)


_Odd = tuple[Sequence[InterfaceTensor], Sequence[InterfaceTensor], str]
"""Weights, those that are annotated as they should be, and why."""


def _odd_layers(known: Sequence[Family]) -> Iterator[_Odd]:
    """The weights of a few layers that are annotated otherwise than those of the others."""
    for family in known:
        counts = Counter(one.sharding for one in family.weights)
        if len(counts) > 1:
            (usual, count), *rest = counts.most_common()
            if count > sum(other for _, other in rest):
                as_usual = [one for one in family.weights if one.sharding == usual]
                for sharding, _ in rest:
                    odd = [one for one in family.weights if one.sharding == sharding]
                    yield odd, as_usual, "they are the same weight of several layers"


def _odd_partners(known: Sequence[Family], partners: Partners) -> Iterator[_Odd]:
    """The weights that are annotated otherwise than most of their shape that are multiplied with the same value."""
    values = [{value for one in family.weights for value in partners.of(one.index)} for family in known]
    for at, family in enumerate(known):
        beside = [
            other
            for place, other in enumerate(known)
            if other.members[0].shape == family.members[0].shape and values[place] & values[at]
        ]
        counts = Counter(other.members[0].sharding for other in beside)
        own = family.members[0].sharding
        for usual in [one for one in counts if one != own and counts[one] >= counts[own]]:
            as_usual = [other for other in beside if other.members[0].sharding == usual]
            names = [one for other in as_usual for one in other.weights]
            yield family.weights, names, "they are multiplied with the same value"


def _state(known: Sequence[Family], odd: Sequence[InterfaceTensor]) -> list[InterfaceTensor]:
    """The optimizer state of weights that is annotated as they are."""
    family = next(one for one in known if odd[0] in one.weights)
    return [one for one in family.members if one not in family.weights and one.sharding == odd[0].sharding]


def _size(odd: Sequence[InterfaceTensor]) -> int:
    return sum(prod(one.shape) for one in odd)
