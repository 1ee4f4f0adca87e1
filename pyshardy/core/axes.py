"""Axis references, and the algebra of axis references and of lists of them.

A mesh axis of size N is a chain of factors 1..N. A reference names an interval of this chain: the full axis is
`[1, N)`; the sub-axis `"x":(2)4` is `[2, 8)`, the middle factor after reshaping the axis to `[2, 4, N/8]`.
References to different axes never overlap.

Source: docs/semantics/representation.md#axes-and-sub-axes
Source: docs/semantics/representation.md#algebra-of-axes
"""

from __future__ import annotations

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
        InvalidShardingError: The pre-size is below 1, the size below 2, or their product beyond 64 bits.

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
        if pre_size * size >= 2**63:
            raise InvalidShardingError(doing, got=f"sub-axis ({pre_size}){size}", needed="an end below 2^63")
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


Dims = tuple[tuple[str, ...], ...]
"""Per dimension the names of its mesh axes, major to minor."""
