"""Cures by constraints of intermediate values: lost axes come back, or a better layout."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from itertools import zip_longest
from math import prod
from typing import NamedTuple

from pyshardy.checkup.cures import Cure
from pyshardy.checkup.program.families import batch_rows
from pyshardy.core.axes import Dims
from pyshardy.core.mesh import Mesh
from pyshardy.core.spec import format_spec
from pyshardy.errors import UsageError
from pyshardy.explain.explanation import StayedWhole, ValueStory
from pyshardy.ir.dtypes import known_bytes
from pyshardy.ir.named_values import NamedValue, named_values
from pyshardy.report.constraints import PlanConstraint
from pyshardy.report.diagnosis import FindingKind
from pyshardy.report.patch import patch
from pyshardy.results.constraining import with_plan_constraints
from pyshardy.results.propagation import Propagation
from pyshardy.searching.autopartition.constraints import ConstrainableValue, changes
from pyshardy.searching.planning.constraining import constrainable_in
from pyshardy.source.syntax import syntax_tree

_LOST = frozenset(("lost before", "taken", "conflict", "not divisible", "blocked", "gaps", "dropped"))
"""The reasons by which a dimension lacks an axis that something gave it."""
_UNEVEN = "not divisible"
_KERAS_MESH = "DeviceMesh"
_PART = ":("
"""In the text of a sharding, the sign of a part of an axis."""


def value_cures(propagated: Propagation, mesh: Mesh) -> Iterator[Cure]:
    """Constraints of the largest values: first those that bring a lost axis back, in program order, then others.

    Args:
        propagated: The program.
        mesh: Its mesh.
    """
    values = named_values(propagated.before.root)
    sizes = dict(mesh.axes)
    rows = batch_rows(propagated.before)
    sites = [
        (site, _story(propagated, values[site.number]))
        for site in constrainable_in(propagated.sharded.root, values, with_parts=True)
    ]
    for site, story in sites:
        for dim, reason in _lost(story).items():
            axis = reason.axis and reason.axis.strip('"')
            dims = _with_axis(site, dim, axis, sizes) if axis in sizes else None
            if dims is not None:
                yield _cure(values[site.number], site, dims, mesh, story, (dim, reason))
        for axes in _partly_lost(site, story, rows, sizes):
            new, reason = _whole_rows(site.dims, axes)
            yield _cure(values[site.number], site, new, mesh, story, (0, reason))
    largest = sorted(sites, key=lambda pair: -pair[0].bytes)
    for turn in zip_longest(*(changes(site.shape, site.dims, sizes) for site, _ in largest)):
        for (site, story), dims in zip(largest, turn):
            if dims is not None and dims != site.dims:
                yield _cure(values[site.number], site, dims, mesh, story)


def _partly_lost(
    site: ConstrainableValue, story: ValueStory | None, rows: Collection[tuple[str, ...]], sizes: Mapping[str, int]
) -> Iterator[tuple[str, ...]]:
    """All axes of a batch, for a value whose first dimension has only the first of them."""
    axes = site.dims[0] if site.dims and 0 not in _lost(story) else ()
    for own in sorted(one for one in rows if axes and len(one) > len(axes) and one[: len(axes)] == axes):
        if site.shape[0] % prod(sizes[axis] for axis in own) == 0:
            yield own


def _whole_rows(dims: Dims, axes: tuple[str, ...]) -> tuple[Dims, StayedWhole]:
    """A sharding with all axes of the batch on the first dimension, and why it lacks some."""
    missing = [axis for axis in axes if axis not in dims[0]]
    elsewhere = [place for place, one in enumerate(dims) if place and not set(missing).isdisjoint(one)]
    new = axes, *(tuple(axis for axis in one if axis not in axes) for one in dims[1:])
    named = " and ".join(f'"{axis}"' for axis in missing)
    where = f"dimension {elsewhere[0]} has it" if elsewhere else "it is on no other dimension"
    text = f"the batch comes in along {format_spec((axes,))}, and {where}"
    return new, StayedWhole("taken", text, named, None)


class Uneven(NamedTuple):
    """A dimension that stays whole, or is split less, because an axis does not divide it.

    Attributes:
        one: The value.
        dim: The dimension.
        axis: The axis.
        shards: The number of its devices.
        bytes: The bytes of a device that splitting would save.
        why: The reason in words.
    """

    one: NamedValue
    dim: int
    axis: str
    shards: int
    bytes: float
    why: str


def uneven_values(propagated: Propagation, mesh: Mesh) -> Iterator[Uneven]:
    """The largest values that an axis does not divide.

    Args:
        propagated: The program.
        mesh: Its mesh.
    """
    sizes = dict(mesh.axes)
    values = named_values(propagated.before.root)
    for site in constrainable_in(propagated.sharded.root, values, with_parts=True):
        one = values[site.number]
        held = known_bytes(site.shape, site.element) / prod(sizes[axis] for axes in site.dims for axis in axes)
        for dim, reason in _lost(_story(propagated, one)).items():
            axis = (reason.axis or "").strip('"')
            if reason.kind == _UNEVEN and axis in sizes:
                yield Uneven(one, dim, axis, sizes[axis], held * (1 - 1 / sizes[axis]), reason.text)


def _with_axis(site: ConstrainableValue, dim: int, axis: str, sizes: dict[str, int]) -> Dims | None:
    """The axes of a value with one more on a dimension, taken from where it is; None if it does not divide."""
    rest = tuple(tuple(one for one in axes if one != axis) for axes in site.dims)
    new = tuple((*axes, axis) if place == dim else axes for place, axes in enumerate(rest))
    return new if new in list(changes(site.shape, site.dims, sizes)) else None


def _story(propagated: Propagation, one: NamedValue) -> ValueStory | None:
    """The explanation of a value; None if its line has no value of its shape in the propagated program."""
    span = one.value.span
    try:
        alike = propagated.why.lacking(f"{span.file}:{span.line}", one.value.shape)
    except UsageError:
        return None
    return max(alike, key=lambda story: len(_lost(story)), default=None)


def _lost(story: ValueStory | None) -> dict[int, StayedWhole]:
    """By dimension why it lacks an axis that something gave it."""
    found: dict[int, StayedWhole] = {}
    for dim in () if story is None else story.dims:
        reason = next((reason for reason in dim.reasons if reason.kind in _LOST and reason.axis), None)
        if reason is not None:
            found[dim.dim] = reason
    return found


def _cure(
    one: NamedValue,
    site: ConstrainableValue,
    dims: Dims,
    mesh: Mesh,
    story: ValueStory | None,
    lost: tuple[int, StayedWhole] | None = None,
) -> Cure:
    value = one.value
    constraint = PlanConstraint(
        one.name, value.function, *value.span, value.shape, value.element, dims, value.count, 0.0, 0.0
    )
    where = f"{constraint.value} at {constraint.place}"
    parts = [] if story is None else [dim for dim in story.dims if _PART in dim.sharding]
    if lost is not None:
        kind = FindingKind.LOST_AXIS
        dim, reason = lost
        is_gradient = (reason.axis or "").strip('"') in site.dims[dim]
        of, it = ("the gradient of ", "the value itself") if is_gradient else ("", "it")
        what = f"{of}{where} lost {reason.axis} on dimension {dim}: {it} is {format_spec(site.dims)}"
        why = reason.text
    elif parts:
        kind = FindingKind.LOST_AXIS
        split = " and ".join(f"{dim.sharding} on dimension {dim.dim}" for dim in parts)
        what = f"{where} has only parts of an axis: {split}"
        why = "the op divides the dimension that has the axis, and what follows uses one of the two parts"
    else:
        kind = FindingKind.LAYOUT
        what = f"{where} is {format_spec(site.dims)}, and its uses are better off with {format_spec(dims)}"
        reasons = {} if story is None else {dim.dim: dim.reasons[0].text for dim in story.dims if dim.reasons}
        changed = [dim for dim in reasons if dims[dim] != site.dims[dim]]
        why = f"dimension {changed[0]} is whole, {reasons[changed[0]]}" if changed else ""
    return Cure(
        kind,
        what,
        why,
        (value.span.file, value.span.line, value.span.column),
        f"{constraint.text} at {constraint.place}",
        partial(with_plan_constraints, constraints=(constraint,), mesh=mesh),
        partial(_diff, constraint, dict(mesh.axes)),
        value.span,
        is_design=kind is FindingKind.LAYOUT,
    )


def _diff(constraint: PlanConstraint, mesh: Mapping[str, int]) -> str:
    """The constraint as a diff; empty where the statement cannot take one, or the file trains with keras.

    Keras calls layers with sizes that no axis divides to find the shapes of outputs, and JAX refuses to constrain
    these.
    """
    tree = syntax_tree(constraint.file)
    if tree is not None and any(
        isinstance(node, ast.Attribute) and node.attr == _KERAS_MESH for node in ast.walk(tree)
    ):
        return ""
    text = patch((constraint,), mesh)
    return text if text.startswith("---") else ""
