"""Ways from one sharding to another that move one axis at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyshardy.core.axes import AxisRef
from pyshardy.core.axis_lists import axes_size
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding

_Dims = tuple[tuple[AxisRef, ...], ...]


def detours(
    before: TensorSharding, after: TensorSharding, mesh: Mesh, shape: Sequence[int]
) -> list[list[TensorSharding]]:
    """Lists of shardings between two; each differs from the one before it in the place of one axis.

    A partitioner that replicates a tensor to go from one to the other may know every single step. New axes split first,
    and axes that are not wanted any more leave last, so that little is sent. Shardings that do not divide the shape are
    left out.

    Nothing is found where one sharding has parts of axes that overlap axes of the other.

    Args:
        before: The sharding that the tensor has.
        after: The sharding that it gets.
        mesh: The mesh of both.
        shape: The shape of the whole tensor.

    >>> from pyshardy.core.notation import parse_sharding
    >>> before, after = parse_sharding('<@m, [{"y"}, {}, {"x"}]>'), parse_sharding('<@m, [{}, {"x", "y"}, {}]>')
    >>> mesh = Mesh([("x", 4), ("y", 2)])
    >>> [[str(one) for one in found] for found in detours(before, after, mesh, (64, 64, 64))]
    [['<@m, [{"y"}, {"x"}, {}]>']]
    """
    start, end = before.dim_axes, after.dim_axes
    axes = dict.fromkeys(axis for axes in (*start, *end) for axis in axes)
    if any(one != other and one.overlaps(other) for one in axes for other in axes):  # parts of an axis beside the whole
        return []
    ordered = sorted(axes, key=lambda axis: _stage(axis, start, end))
    found: list[list[TensorSharding]] = []
    for order in (ordered, _with_moves_reversed(ordered, start, end)):
        states = list(_states(start, end, order))
        if not states or states.pop() != end:
            continue
        if states and all(_divides(dims, mesh, shape) for dims in states):
            way = [TensorSharding(before.mesh, [DimSharding(list(axes)) for axes in dims]) for dims in states]
            if way not in found:
                found.append(way)
    return found


def _stage(axis: AxisRef, start: _Dims, end: _Dims) -> tuple[int, int]:
    """The rank of an axis in the order of moves: new axes first, then axes that change places, by their new places."""
    places = [place for place, one in enumerate(one for axes in end for one in axes) if one == axis]
    if not places:
        return 2, 0
    return (1 if any(axis in axes for axes in start) else 0), places[0]


def _with_moves_reversed(ordered: Sequence[AxisRef], start: _Dims, end: _Dims) -> list[AxisRef]:
    moves = [axis for axis in ordered if _stage(axis, start, end)[0] == 1][::-1]
    others = [[axis for axis in ordered if _stage(axis, start, end)[0] == stage] for stage in (0, 2)]
    return [*others[0], *moves, *others[1]]


def _states(start: _Dims, end: _Dims, order: Sequence[AxisRef]) -> Iterator[_Dims]:
    """The dimensions after each move."""
    dims = [list(axes) for axes in start]
    for axis in order:
        before = tuple(map(tuple, dims))
        for axes in dims:
            if axis in axes:
                axes.remove(axis)
        for axes, wanted in zip(dims, end):
            if axis in wanted:
                axes.append(axis)
        if tuple(map(tuple, dims)) != before:
            yield tuple(map(tuple, dims))


def _divides(dims: _Dims, mesh: Mesh, shape: Sequence[int]) -> bool:
    return all(size % axes_size(axes, mesh) == 0 for size, axes in zip(shape, dims))
