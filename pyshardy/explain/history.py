"""The origin of every axis of every value: an annotation, or a step of propagation.

Source: docs/semantics/propagation.md#what-a-step-records
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from pyshardy.core.axes import AxisRef
from pyshardy.core.axis_lists import subtract_axes
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.explain.subject import Subject
from pyshardy.propagation.trace import GROUP_STEP, MAIN_RESULT, Step
from pyshardy.propagation.views import manual_prefix

if TYPE_CHECKING:
    from pyshardy.explain.reason import Reason

GIVEN_STEP = -1
"""Stands for the step of an axis that was there before propagation."""
MANUAL_STEP = -2
"""Stands for the step of a manual axis, which a value has only outside the manual computation."""


class AxisPlacement(NamedTuple):
    """An axis or sub-axis that came to a dimension of a value.

    Attributes:
        dim: The dimension.
        axis: The axis; no part of it was there before.
        step: The index of the step, `GIVEN_STEP` or `MANUAL_STEP`.
    """

    dim: int
    axis: AxisRef
    step: int


class Link(NamedTuple):
    """One step of a chain.

    Attributes:
        step: The place of the step among all.
        source: The value that the axis comes from.
        source_dim: The dimension there.
        target: The value that it comes to.
        target_dim: The dimension there.
    """

    step: int
    source: int
    source_dim: int
    target: int
    target_dim: int


class Chain(NamedTuple):
    """How an axis or sub-axis came to a dimension of a value.

    Attributes:
        axis: The axis or sub-axis.
        origin: The value where it was given.
        origin_dim: The dimension there.
        is_manual: Whether it is a manual axis there.
        links: The steps from there to here; empty if it was given here.
    """

    axis: AxisRef
    origin: int
    origin_dim: int
    is_manual: bool
    links: tuple[Link, ...]


class History:
    """The history of all values of a program.

    Args:
        subject: The program.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._dims: dict[tuple[int, int, int], int] = {}
        self.lost: dict[tuple[int, int], Reason | None] = {}
        self.own_losses: dict[tuple[int, int], Reason | None] = {}

    @cached_property
    def _starts(self) -> list[int]:
        """Per step, the first step of its visit: the visit started from the state before it."""
        found: list[int] = []
        for index, step in enumerate(self.subject.steps):
            is_same = index > 0 and step.op != GROUP_STEP and self.subject.steps[index - 1].number == step.number
            found.append(found[-1] if is_same else index)
        return found

    def start_of(self, step: int) -> int:
        """The first step of the visit that a step belongs to."""
        return self._starts[step]

    @cached_property
    def placements(self) -> dict[int, list[AxisPlacement]]:
        """Per holder, the axes that came to it, in order."""
        found: dict[int, list[AxisPlacement]] = {}
        program = self.subject.program
        for value, sharding in enumerate(program.shardings):
            for dim, axis in axes_with_dims(sharding):
                found.setdefault(value, []).append(AxisPlacement(dim, axis, GIVEN_STEP))
        for op, view in program.views.items():
            (value,) = program.results[op]
            for dim, given in enumerate(view.outer.dims):
                for axis in given.axes[: manual_prefix(given, view.manual_axes)]:
                    if not any(one.dim == dim and one.axis.overlaps(axis) for one in found.get(value, ())):
                        found.setdefault(value, []).append(AxisPlacement(dim, axis, MANUAL_STEP))
        for index, step in self._kept():
            known = found.setdefault(step.target, [])
            there = tuple([one.axis for one in known if one.dim == step.dim])
            for axis in subtract_axes(step.axes, there, self._mesh(step.target)):
                known.append(AxisPlacement(step.dim, axis, index))
        return found

    def _kept(self) -> Iterator[tuple[int, Step]]:
        """The steps whose axes stay. If an op has one value twice, only the last write counts."""
        for _, group in groupby(enumerate(self.subject.steps), lambda item: item[1].number):
            visit = [item for item in group if item[1].is_kept]
            last = {step.target: step.target_tensor for _, step in visit if step.op != GROUP_STEP}
            yield from (
                item for item in visit if item[1].op == GROUP_STEP or item[1].target_tensor == last[item[1].target]
            )

    def _mesh(self, value: int) -> Mesh:
        sharding = self.subject.shardings[value]
        assert sharding is not None
        return mesh_of(sharding, self.subject.program.meshes)

    def source_dim(self, step: Step) -> int:
        """The dimension of the source that a step takes axes from."""
        if step.op in (GROUP_STEP, MAIN_RESULT):
            return step.dim
        assert step.source_tensor is not None
        key = step.op, step.source_tensor, step.factor
        if key not in self._dims:
            rule = self.subject.rule(step.op)
            assert rule is not None
            mapping = rule.tensors[step.source_tensor]
            self._dims[key] = next(dim for dim, factors in enumerate(mapping) if step.factor in factors)
        return self._dims[key]

    def chains(self, value: int, dim: int, axis: AxisRef) -> list[Chain]:
        """How an axis came to a dimension of a holder: one chain per part that came separately."""
        found: list[Chain] = []
        todo: list[tuple[int, int, AxisRef, int, tuple[Link, ...]]] = [(value, dim, axis, len(self._starts), ())]
        steps = self.subject.steps
        while todo:
            at, at_dim, wanted, before, links = todo.pop()
            parts = []
            for one in self.placements.get(at, ()):
                part = one.axis.overlap(wanted) if one.dim == at_dim and one.step < before else None
                if part is None:
                    continue
                if one.step < 0:
                    found.append(Chain(part, at, at_dim, one.step == MANUAL_STEP, links[::-1]))
                    continue
                step = steps[one.step]
                if step.source is not None:
                    source_dim = self.source_dim(step)
                    link = Link(one.step, step.source, source_dim, at, at_dim)
                    parts.append((step.source, source_dim, part, self._starts[one.step], (*links, link)))
            todo += reversed(parts)
        return sorted(found, key=lambda chain: (chain.axis.pre_size, chain.axis.size or 0))


def axes_with_dims(sharding: TensorSharding | None) -> Iterator[tuple[int, AxisRef]]:
    """Every axis on a dimension, with the dimension."""
    for dim, given in enumerate(() if sharding is None else sharding.dims):
        for axis in given.axes:
            yield dim, axis
