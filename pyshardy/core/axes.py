"""Axis references, and the algebra of axis references and of lists of them.

A mesh axis of size N is a chain of factors 1..N. A reference names an interval of this chain: the full axis is
`[1, N)`; the sub-axis `"x":(2)4` is `[2, 8)`, the middle factor after reshaping the axis to `[2, 4, N/8]`.
References to different axes never overlap.

Source: docs/semantics/representation.md#axes-and-sub-axes
Source: docs/semantics/representation.md#algebra-of-axes
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from pyshardy.core.intern import Interned, as_integer
from pyshardy.core.mesh import Mesh
from pyshardy.core.text import quote
from pyshardy.errors import InvalidShardingError


class AxisRef(Interned):
    """A mesh axis, or a sub-axis of one.

    Args:
        name: Name of the axis.
        pre_size: Product of the sizes more major than the sub-axis, at least 1; 1 for a full axis.
        size: Size of the sub-axis, at least 2; None for the full axis.

    Raises:
        InvalidShardingError: The pre-size is below 1 or the size below 2.

    >>> AxisRef("x"), AxisRef("x", 2, 4)
    (AxisRef('x'), AxisRef('x', 2, 4))
    """

    __slots__ = ("name", "pre_size", "size")

    name: str
    pre_size: int
    size: int | None

    def __new__(cls, name: str, pre_size: int = 1, size: int | None = None) -> AxisRef:  # noqa: D102 (the class docstring says it)
        return cls._make((name, pre_size, size))

    @classmethod
    def _canonical(cls, name: str, pre_size: int, size: int | None) -> tuple[str, int, int | None]:
        doing = f'referring to axis "{name}"'
        if not isinstance(name, str):
            raise InvalidShardingError("referring to an axis", got=f"name {name!r}", needed="a string")
        pre_size = as_integer(pre_size, doing)
        if size is None:
            if pre_size != 1:
                raise InvalidShardingError(doing, got=f"pre-size {pre_size} without a size", needed="both or neither")
            return name, pre_size, None
        size = as_integer(size, doing)
        if pre_size < 1:
            raise InvalidShardingError(doing, got=f"sub-axis pre-size {pre_size}", needed="at least 1")
        if size < 2:
            raise InvalidShardingError(doing, got=f"sub-axis size {size}", needed="greater than 1")
        return name, pre_size, size

    def __repr__(self) -> str:
        part = "" if self.size is None else f", {self.pre_size}, {self.size}"
        return f"AxisRef({self.name!r}{part})"

    def __str__(self) -> str:
        return quote(self.name) if self.size is None else f"{quote(self.name)}:({self.pre_size}){self.size}"

    @property
    def is_full(self) -> bool:
        """Whether this is a whole axis."""
        return self.size is None

    def length(self, mesh: Mesh) -> int:
        """Number of shards that this reference makes: the size of the axis or sub-axis."""
        return mesh.axis_size(self.name) if self.size is None else self.size

    def end(self, mesh: Mesh) -> int:
        """The end of the interval of this reference: pre-size times size."""
        return self.pre_size * self.length(mesh)

    def sort_key(self) -> tuple[str, int, int, int]:
        """Sort key of references: by name, then sub-axes at the front of the axis, the full axis, other sub-axes."""
        if self.size is None:
            return self.name, 1, 0, 0
        return self.name, 0 if self.pre_size == 1 else 2, self.pre_size, self.size

    def contains(self, other: AxisRef) -> bool:
        """Whether this interval contains the interval of `other`."""
        if self.name != other.name:
            return False
        if self.size is None:
            return True
        if other.size is None:
            return False
        return self.pre_size <= other.pre_size and other.pre_size * other.size <= self.pre_size * self.size

    def is_prefix_of(self, other: AxisRef) -> bool:
        """Whether `other` contains this reference and both start at the same point."""
        return self.pre_size == other.pre_size and other.contains(self)

    def is_strict_prefix_of(self, other: AxisRef) -> bool:
        """Whether this reference is a prefix of `other` and differs from it."""
        return self is not other and self.is_prefix_of(other)

    def is_suffix_of(self, other: AxisRef, mesh: Mesh) -> bool:
        """Whether `other` contains this reference and both end at the same point."""
        return other.contains(self) and self.end(mesh) == other.end(mesh)

    def overlaps(self, other: AxisRef) -> bool:
        """Whether the two references share a part of an axis.

        >>> AxisRef("x", 1, 4).overlaps(AxisRef("x", 2, 4)), AxisRef("x", 1, 2).overlaps(AxisRef("x", 2, 2))
        (True, False)
        """
        if self.name != other.name:
            return False
        if self.size is None or other.size is None:
            return True
        return self.pre_size < other.pre_size * other.size and other.pre_size < self.pre_size * self.size

    def can_coexist(self, other: AxisRef) -> bool:
        """Whether both can be cut from one axis: their borders must divide each other in order."""
        if self.name != other.name or self.size is None or other.size is None:
            return True
        low, high = sorted((self.pre_size, other.pre_size))
        low_end, high_end = sorted((self.pre_size * self.size, other.pre_size * other.size))
        if low_end > high:
            return low_end % high == 0 and high % low == 0 and high_end % low_end == 0
        return high % low_end == 0

    def overlap(self, other: AxisRef) -> AxisRef | None:
        """The common part of both; None if they do not overlap or cannot coexist."""
        if self.name != other.name:
            return None
        if self.size is None:
            return other
        if other.size is None:
            return self
        if not self.overlaps(other) or not self.can_coexist(other):
            return None
        start = max(self.pre_size, other.pre_size)
        return AxisRef(self.name, start, min(self.pre_size * self.size, other.pre_size * other.size) // start)

    def prefix_without_overlap(self, other: AxisRef) -> AxisRef | None:
        """The longest prefix of this reference that does not touch `other`; None if there is none.

        >>> AxisRef("x").prefix_without_overlap(AxisRef("x", 2, 3))
        AxisRef('x', 1, 2)
        """
        if not self.can_coexist(other):
            return None
        if not self.overlaps(other):
            return self
        if self.pre_size >= other.pre_size:
            return None
        return AxisRef(self.name, self.pre_size, other.pre_size // self.pre_size)

    def suffix_without_overlap(self, other: AxisRef, mesh: Mesh) -> AxisRef | None:
        """The longest suffix of this reference that does not touch `other`; None if there is none."""
        if not self.can_coexist(other):
            return None
        if not self.overlaps(other):
            return self
        end, other_end = self.end(mesh), other.end(mesh)
        return None if end <= other_end else AxisRef(self.name, other_end, end // other_end)

    def common_prefix(self, other: AxisRef) -> AxisRef | None:
        """The shorter of the two if it is a prefix of the other, else None."""
        if not self.can_coexist(other):
            return None
        if self.is_prefix_of(other):
            return self
        return other if other.is_prefix_of(self) else None

    def can_merge(self, minor: AxisRef) -> bool:
        """Whether `minor` begins where this sub-axis ends, so that the two form one reference."""
        return (
            self.size is not None
            and minor.size is not None
            and self.name == minor.name
            and self.pre_size * self.size == minor.pre_size
        )

    def merge(self, minor: AxisRef, mesh: Mesh) -> AxisRef:
        """This reference merged with `minor`, which it can merge with: a sub-axis or the full axis."""
        size = self.length(mesh) * minor.length(mesh)
        return AxisRef(self.name) if size == mesh.axis_size(self.name) else AxisRef(self.name, self.pre_size, size)

    def head(self, size: int, mesh: Mesh) -> AxisRef:
        """The major part of this reference, of length `size`, which must divide its length.

        >>> AxisRef("x").head(2, Mesh([("x", 8)]))
        AxisRef('x', 1, 2)
        """
        return self if size == self.length(mesh) else AxisRef(self.name, self.pre_size, size)

    def tail(self, size: int, mesh: Mesh) -> AxisRef:
        """The rest of this reference after its first `size`, which must divide its length and be smaller.

        >>> AxisRef("x").tail(2, Mesh([("x", 8)]))
        AxisRef('x', 2, 4)
        """
        return AxisRef(self.name, self.pre_size * size, self.length(mesh) // size) if size > 1 else self


Axes = tuple[AxisRef, ...]


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


def check_axes_in_mesh(axes: Iterable[AxisRef], mesh: Mesh, doing: str) -> None:
    """Raise `InvalidShardingError` unless every reference fits its axis in the mesh."""
    for axis in axes:
        try:
            total = mesh.axis_size(axis.name)
        except InvalidShardingError as error:
            raise error.located(doing) from None
        if axis.size is None:
            continue
        if total % axis.end(mesh):
            raise InvalidShardingError(
                doing, got=f"sub-axis {axis}", needed=f'an end that divides {total}, the size of axis "{axis.name}"'
            )
        if axis.size == total:
            raise InvalidShardingError(
                doing, got=f"sub-axis {axis} of the full size {total}", needed=f'the full axis "{axis.name}"'
            )
