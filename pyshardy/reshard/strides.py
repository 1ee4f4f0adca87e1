"""Whether two shardings lay out the same data alike although the shapes differ.

Every axis of a sharding steps through the row-major order of the elements with a stride. Across a reshape, two
shardings agree when the same axes step at the same positions.

Source: docs/semantics/reshards-and-collectives.md#the-same-data-under-another-shape
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from pyshardy.core.axes import AxisRef
from pyshardy.core.axis_lists import axes_size
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding


class _Stride:
    """One axis, the distance between its shards, and the number of runs into which axes before it cut the elements.

    Attributes:
        axis: The axis.
        stride: Distance between neighbouring shards, in elements.
        prefix: Product of the sizes of the dimensions before, and of the axes before it in its dimension.
        size: Size of the dimension.
    """

    __slots__ = ("axis", "stride", "prefix", "size")

    def __init__(self, axis: AxisRef, stride: int, prefix: int, size: int) -> None:
        self.axis = axis
        self.stride = stride
        self.prefix = prefix
        self.size = size


def equivalent_across_reshape(
    first: TensorSharding,
    first_shape: Sequence[int],
    second: TensorSharding,
    second_shape: Sequence[int],
    mesh: Mesh,
    is_exact: bool = False,
) -> bool:
    """Whether a reshape between tensors with these shardings moves nothing, even if axes do not divide dimensions.

    Args:
        first: The sharding of one tensor.
        first_shape: Its shape.
        second: The sharding of the other tensor.
        second_shape: Its shape.
        mesh: The mesh of both.
        is_exact: Whether shards count with their padding, as in memory, and not as exact fractions of a dimension.

    >>> from pyshardy.core.notation import parse_sharding
    >>> mesh = Mesh([("a", 2), ("b", 4)])
    >>> flat, split = parse_sharding('<@m, [{"a", "b"}]>'), parse_sharding('<@m, [{"a"}, {"b"}]>')
    >>> equivalent_across_reshape(flat, (8,), split, (2, 4), mesh)
    True
    >>> whole, parts = parse_sharding('<@m, [{"a"}]>'), parse_sharding('<@m, [{"a"}, {}]>')
    >>> [equivalent_across_reshape(whole, (10,), parts, (5, 2), mesh, is_exact) for is_exact in (False, True)]
    [True, False]
    """
    if first is second and tuple(first_shape) == tuple(second_shape):
        return True
    if first.mesh != second.mesh or first.replicated != second.replicated:
        return False
    if is_exact:
        return _strides(first, first_shape, mesh) == _strides(second, second_shape, mesh)
    return _prefixes(first, first_shape, mesh) == _prefixes(second, second_shape, mesh)


def _prefixes(sharding: TensorSharding, shape: Sequence[int], mesh: Mesh) -> list[tuple[AxisRef, int]]:
    steps = _merged(_steps(sharding, shape, mesh), mesh, _is_one_run)
    return [(step.axis, step.prefix) for step in steps]


def _strides(sharding: TensorSharding, shape: Sequence[int], mesh: Mesh) -> list[tuple[AxisRef, int]]:
    steps = _merged(_steps(sharding, shape, mesh, is_padded=True), mesh, _is_one_stride)
    return [(step.axis, step.stride) for step in steps]


def _steps(sharding: TensorSharding, shape: Sequence[int], mesh: Mesh, is_padded: bool = False) -> list[_Stride]:
    """The axes from last to first, sorted by stride; without padding, strides are fractions of an element."""
    before = [1]
    for size in shape:
        before.append(before[-1] * size)
    found: list[_Stride] = []
    counts = [axes_size(dim.axes, mesh) for dim in sharding.dims]
    parts, behind = prod(counts), 1
    for dim in reversed(range(len(shape))):
        axes, size = sharding.dims[dim].axes, shape[dim]
        stride = behind * (-(-size // counts[dim]) if is_padded else size * (parts // counts[dim]))
        for index in reversed(range(len(axes))):
            found.append(_Stride(axes[index], stride, before[dim] * axes_size(axes[:index], mesh), size))
            stride *= axes[index].length(mesh)
        behind *= size
    return sorted(found, key=lambda step: step.stride)


def _merged(steps: Sequence[_Stride], mesh: Mesh, is_one: Callable[[_Stride, _Stride, Mesh], bool]) -> list[_Stride]:
    """Merge neighbouring parts of an axis that step as one."""
    found: list[_Stride] = []
    for step in steps:
        minor = found[-1] if found else None
        if minor is None or not step.axis.can_merge(minor.axis) or not is_one(step, minor, mesh):
            found.append(step)
            continue
        axis = step.axis.merge(minor.axis, mesh)
        found[-1] = _Stride(axis, minor.stride, min(step.prefix, minor.prefix), step.size)
    return found


def _is_one_stride(major: _Stride, minor: _Stride, mesh: Mesh) -> bool:
    return major.stride == minor.stride * minor.axis.length(mesh)


def _is_one_run(major: _Stride, minor: _Stride, mesh: Mesh) -> bool:
    if major.prefix == minor.prefix:
        return True
    return major.axis.length(mesh) == major.size and minor.prefix == major.prefix * major.size
