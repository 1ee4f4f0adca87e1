"""Whether two shardings lay out the same data alike although the shapes differ (representation spec, section 8.4).

Every axis of a sharding steps through the row-major order of the elements with a stride. Across a reshape, two
shardings agree when the same axes step at the same places.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

from pyshardy.core.axes import AxisRef, axes_size
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding


class _Step:
    """One axis, how far apart its shards are, and in how many runs the elements before it are cut.

    Attributes:
        axis: The axis.
        stride: Distance between neighbouring shards, in elements.
        prefix: Product of the sizes of the dimensions before, and of the axes before it in its dimension.
        size: Size of the dimension.
    """

    __slots__ = ("axis", "stride", "prefix", "size")

    def __init__(self, axis: AxisRef, stride: Fraction, prefix: int, size: int) -> None:
        self.axis = axis
        self.stride = stride
        self.prefix = prefix
        self.size = size


def equivalent_across_reshape(
    first: TensorSharding, first_shape: Sequence[int], second: TensorSharding, second_shape: Sequence[int], mesh: Mesh
) -> bool:
    """Whether a reshape between tensors sharded like this moves nothing, even where axes do not divide dimensions.

    >>> from pyshardy.core.notation import parse_sharding
    >>> mesh = Mesh([("a", 2), ("b", 4)])
    >>> flat, split = parse_sharding('<@m, [{"a", "b"}]>'), parse_sharding('<@m, [{"a"}, {"b"}]>')
    >>> equivalent_across_reshape(flat, (8,), split, (2, 4), mesh)
    True
    """
    if first is second and tuple(first_shape) == tuple(second_shape):
        return True
    if first.mesh != second.mesh or first.replicated != second.replicated:
        return False
    return _prefixes(first, first_shape, mesh) == _prefixes(second, second_shape, mesh)


def same_strides(
    first: TensorSharding, first_shape: Sequence[int], second: TensorSharding, second_shape: Sequence[int], mesh: Mesh
) -> bool:
    """Whether the same axes step through both tensors with the same strides, each dimension padded to its shards.

    >>> from pyshardy.core.notation import parse_sharding
    >>> mesh = Mesh([("a", 2), ("b", 4)])
    >>> flat, split = parse_sharding('<@m, [{"a", "b"}]>'), parse_sharding('<@m, [{"a"}, {"b"}]>')
    >>> same_strides(flat, (8,), split, (2, 4), mesh), same_strides(flat, (8,), split, (4, 2), mesh)
    (True, False)
    """
    if first.mesh != second.mesh or first.replicated != second.replicated:
        return False
    return _strides(first, first_shape, mesh) == _strides(second, second_shape, mesh)


def _strides(sharding: TensorSharding, shape: Sequence[int], mesh: Mesh) -> list[tuple[AxisRef, Fraction]]:
    found: list[tuple[AxisRef, Fraction]] = []
    for step in _steps(sharding, shape, mesh, is_padded=True):
        if found:
            minor, stride = found[-1]
            if step.axis.can_merge(minor) and step.stride == stride * minor.length(mesh):
                found[-1] = step.axis.merge(minor, mesh), stride
                continue
        found.append((step.axis, step.stride))
    return found


def _prefixes(sharding: TensorSharding, shape: Sequence[int], mesh: Mesh) -> list[tuple[AxisRef, int]]:
    return [(step.axis, step.prefix) for step in _merged(_steps(sharding, shape, mesh), mesh)]


def _steps(sharding: TensorSharding, shape: Sequence[int], mesh: Mesh, is_padded: bool = False) -> list[_Step]:
    """The axes from the last to the first, then ordered by stride."""
    before = [1]
    for size in shape:
        before.append(before[-1] * size)
    found: list[_Step] = []
    behind = 1
    for dim in reversed(range(len(shape))):
        axes, size = sharding.dims[dim].axes, shape[dim]
        stride = Fraction(size, axes_size(axes, mesh))
        stride = behind * (Fraction(ceil(stride)) if is_padded else stride)
        for index in reversed(range(len(axes))):
            found.append(_Step(axes[index], stride, before[dim] * axes_size(axes[:index], mesh), size))
            stride *= axes[index].length(mesh)
        behind *= size
    return sorted(found, key=lambda step: step.stride)


def _merged(steps: Sequence[_Step], mesh: Mesh) -> list[_Step]:
    """Join neighbouring parts of an axis that step as one."""
    found: list[_Step] = []
    for step in steps:
        minor = found[-1] if found else None
        if minor is None or not step.axis.can_merge(minor.axis) or not _step_as_one(step, minor, mesh):
            found.append(step)
            continue
        axis = step.axis.merge(minor.axis, mesh)
        found[-1] = _Step(axis, minor.stride, min(step.prefix, minor.prefix), step.size)
    return found


def _step_as_one(major: _Step, minor: _Step, mesh: Mesh) -> bool:
    if major.prefix == minor.prefix:
        return True
    return major.axis.length(mesh) == major.size and minor.prefix == major.prefix * major.size
