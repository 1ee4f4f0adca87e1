"""The two sides of a manual computation's boundary.

Inside, shardings do not mention the manual axes; outside, these lead every dimension.

Source: docs/semantics/representation.md#manual-computations
"""

from __future__ import annotations

from collections.abc import Collection

from pyshardy.core.axes import Axes
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.propagation.program import ManualView


def strip_manual_axes(sharding: TensorSharding, manual_axes: Collection[str]) -> TensorSharding:
    """The inner view: every dimension without its leading manual axes, and none of them replicated or unreduced.

    >>> sharding = TensorSharding("m", [DimSharding(["x", "y"])], replicated=["z"])
    >>> strip_manual_axes(sharding, {"x", "z"})
    TensorSharding(<@m, [{"y"}]>)
    """
    if not manual_axes:
        return sharding
    return TensorSharding(
        sharding.mesh,
        (
            DimSharding(dim.axes[manual_prefix(dim, manual_axes) :], dim.is_open, _kept_priority(dim, manual_axes))
            for dim in sharding.dims
        ),
        _without(sharding.replicated, manual_axes),
        _without(sharding.unreduced, manual_axes),
        sharding.reduction,
    )


def join_manual_axes(outer: TensorSharding, inner: TensorSharding, manual_axes: Collection[str]) -> TensorSharding:
    """The outer view of `inner`: the leading manual axes of `outer` in front of every dimension.

    Replicated and unreduced axes are those of `outer`.

    >>> outer = TensorSharding("m", [DimSharding(["x", "y"])])
    >>> join_manual_axes(outer, TensorSharding("m", [DimSharding(["z"])]), {"x"})
    TensorSharding(<@m, [{"x", "z"}]>)
    """
    dims = (
        DimSharding(old.axes[: manual_prefix(old, manual_axes)] + new.axes, new.is_open, new.priority)
        for old, new in zip(outer.dims, inner.dims)
    )
    return TensorSharding(inner.mesh, dims, outer.replicated, outer.unreduced)


def manual_prefix(dim: DimSharding, manual_axes: Collection[str]) -> int:
    """The number of leading axes of the dimension that are manual."""
    count = 0
    while count < len(dim.axes) and dim.axes[count].name in manual_axes:
        count += 1
    return count


def _kept_priority(dim: DimSharding, manual_axes: Collection[str]) -> int | None:
    """The priority of the dimension, unless the dimension ends up empty and closed, which may not have one."""
    return dim.priority if dim.is_open or manual_prefix(dim, manual_axes) < len(dim.axes) else None


def _without(axes: Axes, names: Collection[str]) -> Axes:
    return tuple(axis for axis in axes if axis.name not in names)


def to_other_side(view: ManualView, sharding: TensorSharding | None) -> TensorSharding | None:
    """The sharding of a manual computation's edge as its sources see it."""
    if sharding is None:
        return None
    if view.is_argument:
        return join_manual_axes(view.outer, sharding, view.manual_axes)
    return strip_manual_axes(sharding, view.manual_axes)


def from_other_side(view: ManualView, sharding: TensorSharding) -> TensorSharding:
    """The inverse of `to_other_side`."""
    if view.is_argument:
        return strip_manual_axes(sharding, view.manual_axes)
    return join_manual_axes(view.outer, sharding, view.manual_axes)
