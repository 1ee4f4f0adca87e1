"""All-to-alls instead of a permutation, on a dimension with one sub-dimension per axis.

A permutation may only reorder the axes of one dimension so that all-to-alls can take them. It is not needed if every
axis has a dimension of its own, from which an all-to-all can take it at any time.

Source: docs/semantics/reshards-and-collectives.md#fewer-permutations
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import append_or_merge, axes_size
from pyshardy.core.collectives import AllToAllParam, Collective, CollectiveKind
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.reshard.pieces import Pieces, split
from pyshardy.reshard.strides import equivalent_across_reshape

Params = Sequence[AllToAllParam]


@dataclass(frozen=True, slots=True)
class SubDims:
    """All-to-alls between two reshapes.

    Attributes:
        shape: The shape between the reshapes.
        before: The sharding after the first reshape.
        steps: The all-to-alls.
    """

    shape: tuple[int, ...]
    before: TensorSharding
    steps: tuple[Collective, ...]


@dataclass(frozen=True, slots=True)
class Reordering:
    """A permutation of the axes of one dimension.

    Attributes:
        dim: The dimension.
        before: Its axes, in pieces.
        after: The same pieces in their new order.
    """

    dim: int
    before: Axes
    after: Axes


def reordered_dim(before: TensorSharding, after: TensorSharding, mesh: Mesh) -> Reordering | None:
    """The reordering that a permutation does, if it reorders only one dimension.

    >>> from pyshardy.core.notation import parse_sharding
    >>> before, after = parse_sharding('<@m, [{"a", "b"}, {}]>'), parse_sharding('<@m, [{"b", "a"}, {}]>')
    >>> reordered_dim(before, after, Mesh([("a", 2), ("b", 2)]))
    Reordering(dim=0, before=(AxisRef('a'), AxisRef('b')), after=(AxisRef('b'), AxisRef('a')))
    """
    if before.mesh != after.mesh or [dim.is_open for dim in before.dims] != [dim.is_open for dim in after.dims]:
        return None
    olds = [axis for dim in before.dims for axis in dim.axes]
    news = [axis for dim in after.dims for axis in dim.axes]
    pairs = [(split(old.axes, news, mesh), split(new.axes, olds, mesh)) for old, new in zip(before.dims, after.dims)]
    different = [dim for dim, (old, new) in enumerate(pairs) if old != new]
    if len(different) != 1:
        return None
    (dim,) = different
    old, new = pairs[dim]
    return Reordering(dim, tuple(old), tuple(new)) if set(old) == set(new) else None


def plan_sub_dims(
    reordering: Reordering,
    before: TensorSharding,
    chain: Sequence[Params],
    after: TensorSharding,
    shape: tuple[int, ...],
    mesh: Mesh,
) -> SubDims | None:
    """All-to-alls that replace a permutation and the all-to-alls after it.

    Args:
        reordering: The reordering that the permutation does.
        before: The sharding before the permutation.
        chain: The moves of the all-to-alls after it, all from the reordered dimension.
        after: The sharding after them.
        shape: The shape of the tensor, which is static.
        mesh: The mesh.

    Returns:
        None if the permutation is needed.
    """
    if not _is_worth_it(reordering, chain) or shape[reordering.dim] % axes_size(reordering.before, mesh):
        return None
    found = _Splitter(reordering, before, shape, mesh)
    if not all(found.move(params) for params in chain) or not found.reorder(after.dims[reordering.dim].axes):
        return None
    if not equivalent_across_reshape(found.sharding, found.shape, after, shape, mesh, is_exact=True):
        return None
    return SubDims(found.shape, found.before, tuple(found.steps))


def _is_worth_it(reordering: Reordering, chain: Sequence[Params]) -> bool:
    """Whether the chain moves a piece that changes its position."""
    moved = [axis for params in chain for param in params for axis in param.axes]
    return any(
        old is not new and any(axis.contains(old) for axis in moved)
        for old, new in zip(reordering.before, reordering.after)
    )


class _Splitter:
    """The tensor with one dimension split into sub-dimensions, and the all-to-alls so far."""

    def __init__(self, reordering: Reordering, old: TensorSharding, old_shape: tuple[int, ...], mesh: Mesh) -> None:
        self.reordering, self.old, self.old_shape, self.mesh = reordering, old, old_shape, mesh
        self.steps: list[Collective] = []
        dim, pieces = self.reordering.dim, self.reordering.before
        sizes = [piece.length(self.mesh) for piece in pieces]
        rest = self.old_shape[dim] // axes_size(pieces, self.mesh)
        sub_dims: list[Pieces] = [[piece] for piece in pieces]
        if rest > 1:
            sizes.append(rest)
            sub_dims.append([])
        self.count = len(sizes)
        self.shape = (*self.old_shape[:dim], *sizes, *self.old_shape[dim + 1 :])
        axes = [list(old.axes) for old in self.old.dims]
        self.axes = [*axes[:dim], *sub_dims, *axes[dim + 1 :]]
        self.before = self.sharding = self._now()

    def _now(self) -> TensorSharding:
        return TensorSharding(self.old.mesh, map(DimSharding, self.axes), unreduced=self.old.unreduced)

    def move(self, params: Params) -> bool:
        """Do the moves of one all-to-all of the chain; return whether that is possible."""
        moves = [
            AllToAllParam((piece,), self.reordering.dim + self.reordering.before.index(piece), self._shifted(target))
            for axes, _, target in params
            for piece in self.reordering.after
            if any(axis.contains(piece) for axis in axes)
        ]
        targets = {move.target for move in moves}
        if len(targets) < len(moves):
            return False
        self._emit(moves)
        return True

    def _shifted(self, dim: int) -> int:
        return dim + self.count - 1 if dim > self.reordering.dim else dim

    def _emit(self, moves: list[AllToAllParam]) -> None:
        for (piece,), source, target in moves:
            self.axes[source].remove(piece)
            append_or_merge(self.axes[target], piece, self.mesh)
        before, self.sharding = self.sharding, self._now()
        params = tuple(sorted(moves, key=lambda move: move.source))
        self.steps.append(Collective(CollectiveKind.ALL_TO_ALL, before, self.sharding, params=params))

    def reorder(self, wanted: Axes) -> bool:
        """Move the rest to the first sub-dimensions, one axis each; return whether that is possible."""
        first = self.reordering.dim
        places = range(first, first + len(wanted))
        if len(wanted) > self.count:
            return False
        while any(self.axes[place] != [axis] for place, axis in zip(places, wanted)):
            target = next((place for place in places if not self.axes[place]), None)
            if target is None:
                return False
            axis = wanted[target - first]
            source = next((dim for dim in range(first, first + self.count) if self.axes[dim] == [axis]), None)
            if source is None:
                return False
            self._emit([AllToAllParam((axis,), source, target)])
        return True
