"""Which sub-axes of one axis can be used at once.

Of an axis of 6 devices, `"a":(1)2` is the half that a device is in, and `"a":(3)2` its place in a pair. The second
pair is in both halves, so the axis cannot be cut into both at once: devices that differ only along one of the sub-axes
hold different shards along the other, and no collective over groups of equal size can combine them.

Source: docs/semantics/partitioner.md#sub-axes-that-exclude-each-other
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding


def exclude_each_other(axis: AxisRef, other: AxisRef) -> bool:
    """Whether two sub-axes do not overlap but cannot be cut from their axis at once.

    >>> exclude_each_other(AxisRef("a", 1, 2), AxisRef("a", 3, 2))
    True
    >>> exclude_each_other(AxisRef("a", 1, 2), AxisRef("a", 2, 3))
    False
    """
    return not axis.overlaps(other) and not axis.can_coexist(other)


def is_grid(axes: Sequence[AxisRef]) -> bool:
    """Whether all of these axes can be cut from the mesh at once.

    >>> is_grid([AxisRef("a", 1, 2), AxisRef("a", 2, 3)]), is_grid([AxisRef("a", 1, 2), AxisRef("a", 3, 2)])
    (True, False)
    """
    return all(axis.can_coexist(other) for axis in axes for other in axes)


def grid_axes(sharding: TensorSharding) -> Axes:
    """The axes along which devices hold different shards, or different parts of a sum."""
    return (*chain.from_iterable(sharding.dim_axes), *sharding.unreduced)


def on_one_grid(shardings: Iterable[TensorSharding | None]) -> list[TensorSharding | None]:
    """The shardings without axes that an axis before them excludes, and without the minor axes after those.

    Unreduced axes stay, and come before all others.

    >>> from pyshardy.core.notation import parse_sharding
    >>> on_one_grid([parse_sharding(text) for text in ('<@m, [{"a":(1)2}]>', '<@m, [{"b", "a":(3)2, "c"}]>')])
    [TensorSharding(<@m, [{"a":(1)2}]>), TensorSharding(<@m, [{"b"}]>)]
    """
    given = list(shardings)
    kept: dict[str | Mesh, list[AxisRef]] = {}
    for sharding in given:
        if sharding is not None:
            kept.setdefault(sharding.mesh, []).extend(sharding.unreduced)
    return [None if sharding is None else _on_grid(sharding, kept[sharding.mesh]) for sharding in given]


def _on_grid(sharding: TensorSharding, kept: list[AxisRef]) -> TensorSharding:
    """The sharding without the axes that those in `kept` exclude; what stays is added to `kept`."""

    def cut(dim: DimSharding) -> DimSharding:
        for place, axis in enumerate(dim.axes):
            if any(exclude_each_other(axis, other) for other in kept):
                return DimSharding(dim.axes[:place], dim.is_open, dim.priority)
            kept.append(axis)
        return dim

    return sharding.map_dims(cut)
