"""Planning how a tensor gets from one sharding to another (reshard spec, section 4)."""

from __future__ import annotations

from functools import lru_cache

from pyshardy.core.intern import register_cache
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.reshard.all_to_all_step import gather_unwanted, move_wanted
from pyshardy.reshard.collectives import Collective
from pyshardy.reshard.permute_step import permute
from pyshardy.reshard.pieces import State
from pyshardy.reshard.slice_step import slice_missing

Plan = tuple[Collective, ...]


@lru_cache(maxsize=4096)
def plan_collectives(
    before: TensorSharding | None, after: TensorSharding, before_mesh: Mesh | None, mesh: Mesh, shape: tuple[int, ...]
) -> Plan | None:
    """The collectives that bring a tensor from one sharding to another; none if it is there already.

    Args:
        before: The sharding at the beginning, if there is one.
        after: The sharding to reach.
        before_mesh: The mesh of `before`.
        mesh: The mesh of `after`.
        shape: The shape of the tensor; -1 is a dynamic size.

    Returns:
        The steps in order; None if collectives cannot do it: if one of the meshes is a single device, or if their
        axes are not the same.
    """
    if mesh.is_single_device or (before_mesh is not None and before_mesh.is_single_device):
        return None
    if after.is_fully_replicated:
        if before is None or before.is_fully_replicated:
            return ()
        assert before_mesh is not None
        return _plan(before, TensorSharding.replicated_like(before.mesh, before.rank), before_mesh, shape)
    if before is None:
        before = TensorSharding.replicated_like(after.mesh, after.rank)
    elif before_mesh is mesh:
        after = after.with_mesh(before.mesh)  # the same mesh, maybe under another name, which no collective changes
    elif before_mesh is None or not mesh.same_axes(before_mesh):
        return None
    return _plan(before, after, mesh, shape)


register_cache(plan_collectives.cache_clear)


def _plan(before: TensorSharding, after: TensorSharding, mesh: Mesh, shape: tuple[int, ...]) -> Plan:
    state = State(before, after, mesh, shape)
    while not state.is_done:
        steps = len(state.plan)
        slice_missing(state)
        permute(state)
        move_wanted(state, in_order=True)
        move_wanted(state, in_order=False)
        gather_unwanted(state)
        if len(state.plan) == steps:
            break
    return tuple(state.plan)
