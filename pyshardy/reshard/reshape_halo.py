"""Splitting a dimension when the shard size changes: the neighbours that shards need.

Source: docs/semantics/partitioner.md#reshapes
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import axes_size, subtract_axes
from pyshardy.core.mesh import Mesh, check_count
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.core.sharding_on_mesh import shard_counts
from pyshardy.reshard.reshape_groups import GroupKind, ReshapeGroup, reshape_groups
from pyshardy.reshard.strides import equivalent_across_reshape


class Reshape(NamedTuple):
    """A reshape, and the shardings of both sides.

    Attributes:
        shape: Shape of the input.
        out_shape: Shape of the output.
        sharding: How the input is sharded.
        out_sharding: How the output is sharded.
        mesh: The mesh of both.
    """

    shape: tuple[int, ...]
    out_shape: tuple[int, ...]
    sharding: TensorSharding
    out_sharding: TensorSharding
    mesh: Mesh

    @property
    def groups(self) -> tuple[ReshapeGroup, ...]:
        """The groups of dimensions."""
        return reshape_groups(self.shape, self.out_shape)

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of shards of every dimension of the input."""
        return shard_counts(self.sharding, self.mesh)

    @property
    def out_counts(self) -> tuple[int, ...]:
        """Number of shards of every dimension of the output."""
        return shard_counts(self.out_sharding, self.mesh)

    def is_divisible(self, group: ReshapeGroup) -> bool:
        """Whether the shard counts of a group's dimensions divide them."""
        counts, out_counts = self.counts, self.out_counts
        return all(self.shape[dim] % counts[dim] == 0 for dim in group.dims) and all(
            self.out_shape[dim] % out_counts[dim] == 0 for dim in group.out_dims
        )

    @property
    def is_equivalent(self) -> bool:
        """Whether the axes have the same strides over the elements of both sides, up to padding."""
        return self._is_equivalent(is_exact=False)

    @property
    def is_equivalent_with_padding(self) -> bool:
        """Whether every shard has the same elements on both sides, at the same places of its memory."""
        return (
            self.is_equivalent
            and self._is_equivalent(is_exact=True)
            and (0 in self.shape or _runs(self.shape, self.counts) == _runs(self.out_shape, self.out_counts))
        )

    def _is_equivalent(self, is_exact: bool) -> bool:
        return equivalent_across_reshape(
            self.sharding, self.shape, self.out_sharding, self.out_shape, self.mesh, is_exact
        )


def _runs(shape: Sequence[int], counts: Sequence[int]) -> list[tuple[int, int]]:
    """How the elements of a shard, with padding, lie among all elements: numbers and distances, from the last on.

    >>> _runs((6, 3, 2), (2, 1, 4)), _runs((12, 3), (2, 4))
    ([(9, 2)], [(6, 3)])
    """
    found: list[tuple[int, int]] = []
    distance = 1
    for size, count in zip(reversed(shape), reversed(counts)):
        tile = -(-size // count)
        if found and found[-1][0] * found[-1][1] == distance:
            found[-1] = found[-1][0] * tile, found[-1][1]
        elif tile > 1:
            found.append((tile, distance))
        distance *= size
    return found


class SplitHalo(NamedTuple):
    """The data that a shard of a split dimension gets from its neighbours.

    Attributes:
        dim: The dimension.
        out_dims: The dimensions that it is split into.
        left: The number of shards before its own that it needs.
        right: The number of shards after its own that it needs.
        size: Size of a shard of the padded dimension.
        offsets: Per shard, the start of its data in the data that it got, after a margin of `size`.
    """

    dim: int
    out_dims: tuple[int, ...]
    left: int
    right: int
    size: int
    offsets: tuple[int, ...]


def is_free_reshape(reshape: Reshape) -> bool:
    """Whether a reshape moves no data between devices."""
    return reshape.is_equivalent_with_padding or (
        reshape.is_equivalent and all(group.kind is GroupKind.PASS_THROUGH for group in reshape.groups)
    )


def split_halos(reshape: Reshape) -> list[SplitHalo] | None:
    """The data that shards need from their neighbours, per dimension; None if some group is not a simple split.

    >>> from pyshardy.core.notation import parse_sharding
    >>> one, two = parse_sharding('<@m, [{"a", "b"}]>'), parse_sharding('<@m, [{"a"}, {"b"}]>')
    >>> split_halos(Reshape((14,), (2, 7), one, two, Mesh([("a", 2), ("b", 2)])))
    [SplitHalo(dim=0, out_dims=(0, 1), left=1, right=0, size=4, offsets=(8, 8, 7, 7))]
    """
    if not reshape.is_equivalent:
        return None
    found = []
    for group in reshape.groups:
        if reshape.is_divisible(group) or (len(group.dims) == len(group.out_dims) == 1):
            continue
        halo = _split_halo(reshape, group)
        if halo is None:
            return None
        found.append(halo)
    return found


def _split_halo(reshape: Reshape, group: ReshapeGroup) -> SplitHalo | None:
    sizes = [reshape.shape[dim] for dim in group.dims]
    out_sizes = [reshape.out_shape[dim] for dim in group.out_dims]
    if group.kind is not GroupKind.SPLIT or 1 in sizes or 1 in out_sizes:
        return None
    (size,) = sizes
    count, out_counts = reshape.counts[group.dims[0]], [reshape.out_counts[dim] for dim in group.out_dims]
    tile = -(-size // count)
    tiles = [-(-out_size // shards) for out_size, shards in zip(out_sizes, out_counts)]
    if tile * count != prod(tiles) * prod(out_counts):
        return None
    return _halo_of_starts(group, size, tile, _starts(out_sizes, out_counts, tiles))


def _starts(sizes: Sequence[int], counts: Sequence[int], tiles: Sequence[int]) -> list[int]:
    """The position, among all elements, of the first element of every shard."""
    check_count(prod(counts), "finding what shards need from their neighbours", "shards")
    found = []
    for shard in product(*map(range, counts)):
        position = 0
        for size, tile, index in zip(sizes, tiles, shard):
            position = position * size + index * tile
        found.append(position)
    return found


def _halo_of_starts(group: ReshapeGroup, size: int, tile: int, starts: Sequence[int]) -> SplitHalo | None:
    left = right = 0
    for shard, start in enumerate(starts):
        for position in (start, start + tile - 1):
            if position < size:
                left, right = max(left, shard - position // tile), max(right, position // tile - shard)
    if left > 1 or right > 1:
        return None
    offsets = [(left + 1) * tile + (start - shard * tile if start < size else 0) for shard, start in enumerate(starts)]
    return SplitHalo(group.dims[0], group.out_dims, left, right, tile, tuple(offsets))


def replicated_groups(reshape: Reshape) -> tuple[TensorSharding, TensorSharding]:
    """The shardings of both sides without the axes of groups that change and would move data.

    >>> from pyshardy.core.notation import parse_sharding
    >>> one, two = parse_sharding('<@m, [{"a"}, {"b"}]>'), parse_sharding('<@m, [{}, {"a"}, {"b"}]>')
    >>> replicated_groups(Reshape((9, 8), (3, 3, 8), one, two, Mesh([("a", 2), ("b", 2)])))
    (TensorSharding(<@m, [{}, {"b"}]>), TensorSharding(<@m, [{}, {}, {"b"}]>))
    """
    groups = [group for group in reshape.groups if group.kind is not GroupKind.PASS_THROUGH]
    groups = [group for group in groups if not reshape.is_divisible(group) or not is_free_group(reshape, group)]
    axes = [axis for group in groups for dim in group.dims for axis in reshape.sharding.dim_axes[dim]]
    axes += [axis for group in groups for dim in group.out_dims for axis in reshape.out_sharding.dim_axes[dim]]
    mesh = reshape.mesh
    return _without(reshape.sharding, tuple(axes), mesh), _without(reshape.out_sharding, tuple(axes), mesh)


def _without(sharding: TensorSharding, axes: Axes, mesh: Mesh) -> TensorSharding:
    kept = [subtract_axes(dim_axes, axes, mesh) for dim_axes in sharding.dim_axes]
    return sharding.with_dims(dim if rest == dim.axes else DimSharding(rest) for dim, rest in zip(sharding.dims, kept))


def is_free_group(reshape: Reshape, group: ReshapeGroup) -> bool:
    """Whether the axes of one group have the same strides on both sides."""
    dims, out_dims = group.dims, group.out_dims
    part = Reshape(
        tuple(reshape.shape[dim] for dim in dims),
        tuple(reshape.out_shape[dim] for dim in out_dims),
        TensorSharding(reshape.sharding.mesh, [reshape.sharding.dims[dim] for dim in dims]),
        TensorSharding(reshape.sharding.mesh, [reshape.out_sharding.dims[dim] for dim in out_dims]),
        reshape.mesh,
    )
    return part.is_equivalent_with_padding


def exchanged_axes(reshape: Reshape) -> tuple[str, ...]:
    """The names of the axes of all groups that are not divisible, in mesh order."""
    groups = [group for group in reshape.groups if not reshape.is_divisible(group)]
    dims = [reshape.sharding.dims[dim] for group in groups for dim in group.dims]
    dims += [reshape.out_sharding.dims[dim] for group in groups for dim in group.out_dims]
    names = {axis.name for dim in dims for axis in dim.axes if axes_size(dim.axes, reshape.mesh) > 1}
    return tuple(name for name in reshape.mesh.axis_names if name in names)
