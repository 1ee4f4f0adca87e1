"""Lists of axis references, major to minor, as dimensions have them: joined, sorted, cut, compared.

Source: docs/semantics/representation.md#algebra-of-axes
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.mesh import Mesh


def axes_size(axes: Iterable[AxisRef], mesh: Mesh) -> int:
    """Number of shards that a list of references makes: the product of their lengths."""
    return prod(axis.length(mesh) for axis in axes)


def append_or_merge(axes: list[AxisRef], axis: AxisRef, mesh: Mesh) -> None:
    """Append `axis` to the list in place; merge it into the last reference if possible."""
    if axes and axes[-1].can_merge(axis):
        axes[-1] = axes[-1].merge(axis, mesh)
    else:
        axes.append(axis)


def join_axes(lists: Iterable[Axes], mesh: Mesh) -> Axes:
    """The concatenated lists, with neighbours merged where possible.

    >>> join_axes([(AxisRef("x", 1, 2),), (), (AxisRef("x", 2, 2),)], Mesh([("x", 4)]))
    (AxisRef('x'),)
    """
    joined: list[AxisRef] = []
    for axes in lists:
        for axis in axes:
            append_or_merge(joined, axis, mesh)
    return tuple(joined)


def sort_axes(axes: Iterable[AxisRef], mesh: Mesh) -> list[AxisRef]:
    """The references in mesh order: by the position of their axis in the mesh, then by `AxisRef.sort_key`."""
    positions = mesh.positions
    return sorted(axes, key=lambda axis: (positions[axis.name], axis.sort_key()))


def sort_and_merge(axes: Iterable[AxisRef], mesh: Mesh) -> Axes:
    """The references in mesh order with neighbours merged; they must not overlap."""
    merged: list[AxisRef] = []
    for axis in sort_axes(axes, mesh):
        append_or_merge(merged, axis, mesh)
    return tuple(merged)


def common_prefix(first: Sequence[AxisRef], second: Sequence[AxisRef]) -> Axes:
    """The longest list that is a prefix of both; a reference may be cut.

    >>> common_prefix([AxisRef("x"), AxisRef("y")], [AxisRef("x"), AxisRef("y", 1, 2)])
    (AxisRef('x'), AxisRef('y', 1, 2))
    """
    found: list[AxisRef] = []
    for one, other in zip(first, second):
        if one is other:
            found.append(one)
            continue
        shared = one.common_prefix(other)
        if shared is not None:
            found.append(shared)
        break
    return tuple(found)


def lists_overlap(first: Iterable[AxisRef], second: Sequence[AxisRef]) -> bool:
    """Whether any reference of one list overlaps any of the other."""
    return any(one.overlaps(other) for one in first for other in second)


def prefix_without_overlaps(axis: AxisRef, others: Iterable[AxisRef]) -> AxisRef | None:
    """The longest prefix of `axis` that touches none of `others`; None if there is none."""
    current: AxisRef | None = axis
    for other in others:
        if current is None:
            return None
        if current.name == other.name:
            current = current.prefix_without_overlap(other)
    return current


def truncate_overlaps(axes: Axes, others: Iterable[AxisRef]) -> Axes:
    """The longest prefix of the list `axes` that does not overlap `others`; a reference may be cut."""
    others = tuple(others)
    for index, axis in enumerate(axes):
        kept = prefix_without_overlaps(axis, others)
        if kept is not axis:
            return axes[:index] + ((kept,) if kept is not None else ())
    return axes


def subtract_axes(axes: Axes, removed: Axes, mesh: Mesh) -> Axes:
    """The parts of `axes` that `removed` does not cover, in the order of `axes`, not merged.

    >>> mesh = Mesh([("r", 4), ("p", 24)])
    >>> subtract_axes((AxisRef("r"), AxisRef("p", 1, 12)), (AxisRef("p", 2, 3), AxisRef("r", 1, 2)), mesh)
    (AxisRef('r', 2, 2), AxisRef('p', 1, 2), AxisRef('p', 6, 2))
    """
    if not axes or axes == removed:
        return ()
    if not removed:
        return axes
    ordered = sorted(removed, key=AxisRef.sort_key)
    kept: list[AxisRef] = []
    for axis in axes:
        rest: AxisRef | None = axis
        while rest is not None:
            hit = next((other for other in ordered if other.overlaps(rest)), None)
            if hit is None:
                kept.append(rest)
                break
            before = rest.prefix_without_overlap(hit)
            if before is not None:
                kept.append(before)
            rest = rest.suffix_without_overlap(hit, mesh)
    return tuple(kept)


def is_strict_prefix(first: Axes, second: Axes) -> bool:
    """Whether `first` is a strict prefix of `second`; the last reference of `first` may be a cut one of `second`.

    >>> is_strict_prefix((AxisRef("x", 1, 2),), (AxisRef("x"), AxisRef("y")))
    True
    """
    if not first:
        return bool(second)
    count = len(first)
    if count > len(second) or first[:-1] != second[: count - 1]:
        return False
    if count == len(second):
        return first[-1].is_strict_prefix_of(second[-1])
    return first[-1].is_prefix_of(second[count - 1])


def is_prefix(first: Axes, second: Axes) -> bool:
    """Whether `first` equals `second` or is a strict prefix of `second`."""
    return first == second or is_strict_prefix(first, second)


def list_sort_key(axes: Sequence[AxisRef]) -> tuple[int, list[tuple[str, int, int, int]]]:
    """Sort key of lists: shorter lists first, then by the first reference that differs."""
    return len(axes), [axis.sort_key() for axis in axes]


def ordered_refs(mesh: Mesh, mentioned: Iterable[AxisRef]) -> Axes:
    """Every axis of the mesh, cut at the borders of the mentioned sub-axes, in mesh order.

    >>> ordered_refs(Mesh([("u", 4), ("v", 24)]), [AxisRef("v", 2, 3)])
    (AxisRef('u'), AxisRef('v', 1, 2), AxisRef('v', 2, 3), AxisRef('v', 6, 4))
    """
    cuts: dict[str, set[int]] = {}
    for axis in mentioned:
        if axis.size is not None:
            cuts.setdefault(axis.name, set()).update((axis.pre_size, axis.pre_size * axis.size))
    found: list[AxisRef] = []
    for name, size in mesh.axes:
        if name not in cuts:
            found.append(AxisRef(name))
            continue
        borders = sorted(cuts[name] | {1, size})
        found.extend(AxisRef(name, start, end // start) for start, end in zip(borders, borders[1:]))
    return tuple(found)
