"""The state of the planner of collectives: pieces of axes, as they shard a tensor and as they should.

Source: docs/semantics/reshards-and-collectives.md#pieces-of-axes
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.axis_lists import append_or_merge, axes_size
from pyshardy.core.collectives import AllToAllParam, Collective, CollectiveKind
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding

Pieces = list[AxisRef]
Position = tuple[int, int]
"""A dimension and an index in its list of wanted pieces."""


def split(axes: Iterable[AxisRef], others: Iterable[AxisRef], mesh: Mesh) -> Pieces:
    """The axes, cut at the borders of the others.

    >>> split([AxisRef("x")], [AxisRef("x", 2, 2)], Mesh([("x", 8)]))
    [AxisRef('x', 1, 2), AxisRef('x', 2, 2), AxisRef('x', 4, 2)]
    """
    ordered = sorted(others, key=AxisRef.sort_key)
    found: Pieces = []
    for axis in axes:
        first = next((index for index, other in enumerate(ordered) if other.overlaps(axis)), len(ordered))
        rest: AxisRef | None = axis
        for other in ordered[first:]:
            assert rest is not None
            common = rest.overlap(other)
            if common is None or common is rest:
                break
            before = rest.prefix_without_overlap(other)
            if before is not None:
                found.append(before)
            found.append(common)
            rest = rest.suffix_without_overlap(other, mesh)
            if rest is None:
                break
        if rest is not None:
            found.append(rest)
    return found


def merge_neighbours(axes: Iterable[AxisRef], mesh: Mesh) -> Axes:
    """The axes, with neighbours merged if they form one reference."""
    found: Pieces = []
    for axis in axes:
        append_or_merge(found, axis, mesh)
    return tuple(found)


class State:
    """The state of a plan. The axes of a dimension are the settled ones, followed by the current ones.

    Args:
        before: The initial sharding.
        after: The final sharding; its mesh has the same axes.
        mesh: A mesh with these axes.
        shape: The shape of the tensor; -1 is a dynamic size.

    Attributes:
        settled: Per dimension, the leading axes that stay.
        current: Per dimension, the pieces after the settled ones that shard the tensor now.
        wanted: Per dimension, the pieces that should follow the settled ones in the end.
        locked: Per dimension, whether it must be unsharded completely before it is sharded again, because its padding
            changes.
        places: The place that wants each piece, as of the last `take_places`.
        capacity: Per dimension, how much further it may be split; a working number.
        plan: The steps so far.
    """

    def __init__(self, before: TensorSharding, after: TensorSharding, mesh: Mesh, shape: Sequence[int]) -> None:
        self.mesh = mesh
        self.after = after
        self.sharding = before
        self.shape = shape
        self.dims = range(len(shape))
        held = [axis for dim in before.dims for axis in dim.axes]
        wanted = [axis for dim in after.dims for axis in dim.axes]
        self.current = [split(dim.axes, wanted, mesh) for dim in before.dims]
        self.wanted = [split(dim.axes, held, mesh) for dim in after.dims]
        self.settled: list[Pieces] = [[] for _ in self.dims]
        self.locked = [self._must_lock(dim) for dim in self.dims]
        self.capacity = [1] * len(shape)
        self.plan: list[Collective] = []
        for dim in self.dims:
            if not self.locked[dim]:
                self._settle_common(dim)
        self.places: dict[AxisRef, Position] = {}
        self.take_places()

    def _must_lock(self, dim: int) -> bool:
        size = self.shape[dim]
        current, wanted = self.size(self.current[dim]), self.size(self.wanted[dim])
        return size >= 0 and current > 1 and wanted > 1 and -(-size // current) * current != -(-size // wanted) * wanted

    def _settle_common(self, dim: int) -> None:
        current, wanted = self.current[dim], self.wanted[dim]
        while current and wanted and current[0] is wanted[0]:
            self.settled[dim].append(wanted.pop(0))
            current.pop(0)

    def size(self, axes: Iterable[AxisRef]) -> int:
        """The number of shards that the axes make."""
        return axes_size(axes, self.mesh)

    def axes(self, dim: int) -> Axes:
        """The current axes of a dimension."""
        return merge_neighbours((*self.settled[dim], *self.current[dim]), self.mesh)

    @property
    def is_done(self) -> bool:
        """Whether the target is reached."""
        return self.sharding.mesh == self.after.mesh and not any(self.current) and not any(self.wanted)

    def held(self) -> set[AxisRef]:
        """The pieces that shard the tensor and are not settled."""
        return {piece for pieces in self.current for piece in pieces}

    def take_places(self) -> None:
        """Record which place wants each piece now."""
        self.places = {}
        for dim in self.dims:
            if not self.locked[dim]:
                for index, piece in enumerate(self.wanted[dim]):
                    self.places.setdefault(piece, (dim, index))

    def unlock(self) -> None:
        """Unlock the dimensions that are unsharded now."""
        if any(locked and not current for locked, current in zip(self.locked, self.current)):
            self.locked = [locked and bool(current) for locked, current in zip(self.locked, self.current)]
            self.take_places()

    def emit(
        self, kind: CollectiveKind, axes: Iterable[Iterable[AxisRef]] = (), params: tuple[AllToAllParam, ...] = ()
    ) -> None:
        """Add a step that leads to the current axes."""
        ref = self.after.mesh if kind is CollectiveKind.COLLECTIVE_PERMUTE else self.sharding.mesh
        dims = [DimSharding(self.axes(dim)) for dim in self.dims]
        after = TensorSharding(ref, dims, unreduced=self.after.unreduced)
        per_dim = tuple(merge_neighbours(pieces, self.mesh) for pieces in axes)
        self.plan.append(Collective(kind, self.sharding, after, per_dim, params))
        self.sharding = after

    # Filling dimensions

    def fit(self, piece: AxisRef, dim: int) -> tuple[AxisRef, Pieces] | None:
        """The part of a piece that fits a dimension's capacity, which shrinks, and the rest; None if nothing fits."""
        size, capacity = piece.length(self.mesh), self.capacity[dim]
        if capacity <= 1 or (size % capacity and capacity % size):
            return None
        if capacity >= size:
            self.capacity[dim] //= size
            return piece, []
        self.capacity[dim] = 1
        return piece.head(capacity, self.mesh), [piece.tail(capacity, self.mesh)]

    def distribute(self, pool_of: Callable[[int], Pieces], front: bool = False) -> None:
        """Move pieces from the pool of every dimension into its `current`, as far as they fit.

        Args:
            pool_of: The pool of a dimension, which shrinks.
            front: Whether they go to the front of `current`.
        """
        cuts: Pieces = []
        for dim in self.dims:
            self._distribute_into(dim, pool_of(dim), front, cuts)
        if cuts:
            self.wanted = [split(pieces, cuts, self.mesh) for pieces in self.wanted]

    def _distribute_into(self, dim: int, pool: Pieces, front: bool, cuts: Pieces) -> None:
        at = 0 if front else len(self.current[dim])
        index = 0
        while index < len(pool) and self.capacity[dim] > 1:
            fitted = self.fit(pool[index], dim)
            if fitted is None:
                index += 1
                continue
            part, rest = fitted
            del pool[index]
            self.current[dim].insert(at, part)
            at += 1
            if rest:
                pool[:0] = rest
                cuts.append(part)
