"""Plans collectives that bring a tensor from one sharding to another.

Source: docs/semantics/reshards-and-collectives.md#from-reshards-to-collectives
"""

from __future__ import annotations

from functools import lru_cache

from pyshardy.core.axis_lists import common_prefix, lists_overlap, subtract_axes
from pyshardy.core.collectives import Collective, CollectiveKind
from pyshardy.core.grids import grid_axes, is_grid
from pyshardy.core.intern import register_cache
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.errors import InvalidShardingError
from pyshardy.reshard.all_to_all_step import gather_unwanted, move_wanted
from pyshardy.reshard.permute_step import permute
from pyshardy.reshard.pieces import State
from pyshardy.reshard.slice_step import slice_missing

CollectivePlan = tuple[Collective, ...]


@lru_cache(maxsize=4096)
def plan_collectives(
    before: TensorSharding | None, after: TensorSharding, before_mesh: Mesh | None, mesh: Mesh, shape: tuple[int, ...]
) -> CollectivePlan | None:
    """The collectives that bring a tensor from one sharding to another; none if they are the same.

    Args:
        before: The initial sharding, if there is one.
        after: The final sharding.
        before_mesh: The mesh of `before`.
        mesh: The mesh of `after`.
        shape: The shape of the tensor; -1 is a dynamic size.

    Returns:
        The steps in order; None if collectives cannot do it: one of the meshes is a single device, or their axes
            differ.

    Raises:
        InvalidShardingError: An axis shards a dimension before and is unreduced after.

    >>> from pyshardy.core.notation import parse_sharding
    >>> mesh = Mesh([("a", 2), ("b", 2)])
    >>> before, after = parse_sharding('<@m, [{"a", "b"}, {}]>'), parse_sharding('<@m, [{}, {"a"}]>')
    >>> for step in plan_collectives(before, after, mesh, mesh, (16, 16)):
    ...     print(step)
    collective_permute -> <@m, [{"b", "a"}, {}]>
    all_to_all [{"a"}: 0->1] -> <@m, [{"b"}, {"a"}]>
    all_gather [{"b"}, {}] -> <@m, [{}, {"a"}]>
    """
    if not is_possible(before, after, before_mesh, mesh):
        return None
    if after.is_fully_replicated:
        if before is None or before.is_fully_replicated:
            return ()
        assert before_mesh is not None
        return _plan(before, TensorSharding.fully_replicated(before.mesh, before.rank), before_mesh, shape)
    if before is None:
        before = TensorSharding.fully_replicated(after.mesh, after.rank)
    elif before_mesh is mesh:
        after = after.with_mesh(before.mesh)  # the same mesh, maybe under another name; no collective changes a name
    return _plan(before, after, mesh, shape)


def is_possible(before: TensorSharding | None, after: TensorSharding, before_mesh: Mesh | None, mesh: Mesh) -> bool:
    """Whether collectives lead from one sharding to another; the arguments are those of `plan_collectives`."""
    if mesh.is_single_device or (before_mesh is not None and before_mesh.is_single_device):
        return False
    return after.is_fully_replicated or before is None or (before_mesh is not None and mesh.same_axes(before_mesh))


register_cache(plan_collectives.cache_clear)


def _plan(before: TensorSharding, after: TensorSharding, mesh: Mesh, shape: tuple[int, ...]) -> CollectivePlan:
    try:
        plan = _in_rounds(before, after, mesh, shape)
    except InvalidShardingError as error:
        _check_unreduced(before, after, error)
        return gather_and_slice(before, after, mesh, shape)
    if all(is_grid(grid_axes(step.after)) for step in plan[:-1]):
        return plan
    return gather_and_slice(before, after, mesh, shape)


def _in_rounds(before: TensorSharding, after: TensorSharding, mesh: Mesh, shape: tuple[int, ...]) -> CollectivePlan:
    """The plan of the reference; raises `InvalidShardingError` if an intermediate sharding is not valid."""
    state = State(before, after, mesh, shape)
    while not state.is_done:
        steps = len(state.plan)
        slice_missing(state)
        permute(state)
        move_wanted(state, in_order=True)
        move_wanted(state, in_order=False)
        gather_unwanted(state)
        if len(state.plan) == steps:
            break  # only axes of size 1 are left
    return tuple(state.plan)


def _check_unreduced(before: TensorSharding, after: TensorSharding, cause: InvalidShardingError) -> None:
    """Refuse unreduced axes that shard a dimension before: a gather makes whole values, not partial ones."""
    sharded = [axis for dim in before.dims for axis in dim.axes]
    found = next((axis for axis in after.unreduced if lists_overlap([axis], sharded)), None)
    if found is not None:
        raise InvalidShardingError(
            f"resharding from {before} to {after} by collectives",
            got=f"axis {found}, which shards a dimension before and must become unreduced",
            needed="sdy.sharded_to_unreduced for that",
            hint="sdy-insert-explicit-reshards inserts it",
        ) from cause


def gather_and_slice(
    before: TensorSharding, after: TensorSharding, mesh: Mesh, shape: tuple[int, ...]
) -> CollectivePlan:
    """A plan that always works: permute into the device order, gather all that differs, slice.

    >>> from pyshardy.core.notation import parse_sharding
    >>> before, after = parse_sharding('<@m, [{"a", "b"}, {}]>'), parse_sharding('<@m, [{"a"}, {"b"}]>')
    >>> for step in gather_and_slice(before, after, Mesh([("a", 2), ("b", 2)]), (8, 8)):
    ...     print(step)
    all_gather [{"b"}, {}] -> <@m, [{"a"}, {}]>
    all_slice [{}, {"b"}] -> <@m, [{"a"}, {"b"}]>
    """
    state = State(before, after, mesh, shape)
    kept = [
        () if state.locked[dim] else common_prefix(before.dims[dim].axes, after.dims[dim].axes) for dim in state.dims
    ]
    state.current = [[] for _ in state.dims]
    state.settled = [list(dim.axes) for dim in before.dims]
    if before.mesh != after.mesh:
        state.emit(CollectiveKind.COLLECTIVE_PERMUTE)
    gathered = [subtract_axes(dim.axes, axes, mesh) for dim, axes in zip(before.dims, kept)]
    state.settled = [list(axes) for axes in kept]
    if any(gathered):
        state.emit(CollectiveKind.ALL_GATHER, gathered)
    sliced = [subtract_axes(dim.axes, axes, mesh) for dim, axes in zip(after.dims, kept)]
    state.settled = [list(dim.axes) for dim in after.dims]
    if any(sliced):
        state.emit(CollectiveKind.ALL_SLICE, sliced)
    return tuple(state.plan)
