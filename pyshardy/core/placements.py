"""Shardings to PyTorch's placements on a `DeviceMesh`, and back, without importing torch.

A placement says what one mesh axis does to the tensor: shard one of its dimensions, replicate it, or hold partial
values. Several axes may shard one dimension, in the order of the mesh, the first one major.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyshardy.core.axes import AxisRef
from pyshardy.core.given import as_rank, as_tuple
from pyshardy.core.mesh import Mesh, as_mesh
from pyshardy.core.sharding import DimSharding, ReductionKind, TensorSharding
from pyshardy.core.sharding_on_mesh import check_sharding
from pyshardy.errors import InvalidShardingError


@dataclass(frozen=True, slots=True)
class Shard:
    """One dimension is split over the axis, as `torch.distributed.tensor.Shard`."""

    dim: int


@dataclass(frozen=True, slots=True)
class Replicate:
    """Every device along the axis holds the same, as `torch.distributed.tensor.Replicate`."""


@dataclass(frozen=True, slots=True)
class Partial:
    """Every device along the axis holds a partial value, as `torch.distributed.tensor.Partial`."""

    reduce_op: str = "sum"


TorchPlacement = Shard | Replicate | Partial


def to_torch(sharding: TensorSharding, mesh: Mesh) -> tuple[TorchPlacement, ...]:
    """One placement per axis of the mesh, for `distribute_tensor(x, init_device_mesh(...), placements)`.

    Args:
        sharding: The sharding; its dimensions must be closed.
        mesh: Its mesh; the `DeviceMesh` has the same sizes and names.

    Raises:
        InvalidShardingError: Placements cannot express it: sub-axes, open dimensions, priorities, and axes in another
            order than that of the mesh.

    >>> to_torch(TensorSharding("m", [DimSharding(["x"]), DimSharding()], unreduced=["y"]), Mesh([("x", 4), ("y", 2)]))
    (Shard(dim=0), Partial(reduce_op='sum'))
    """
    sharding, mesh = TensorSharding.of(sharding), as_mesh(mesh)
    check_sharding(sharding, mesh, sharding.rank)
    _check_expressible(sharding, mesh)
    found: dict[str, TorchPlacement] = {axis.name: Partial(sharding.reduction.value) for axis in sharding.unreduced}
    for number, dim in enumerate(sharding.dims):
        found.update((axis.name, Shard(number)) for axis in dim.axes)
    return tuple(found.get(name, Replicate()) for name in mesh.axis_names)


def _check_expressible(sharding: TensorSharding, mesh: Mesh) -> None:
    got = hint = None
    sub_axes = [axis for axis in sharding.all_axes() if not axis.is_full]
    if sub_axes:
        got, hint = f"the sub-axis {sub_axes[0]}", "a mesh with that axis split"
    elif any(dim.is_open for dim in sharding.dims):
        got, hint = "an open dimension", "sharding.closed()"
    elif any(dim.priority is not None for dim in sharding.dims):
        got, hint = "a priority", "sharding.without_priorities()"
    elif mesh.device_ids is not None and not mesh.axes:
        got = "a mesh of a single device"
    for dim in sharding.dims:
        order = [mesh.positions[axis.name] for axis in dim.axes]
        if got is None and order != sorted(order):
            got = f"a dimension split by {', '.join(map(str, dim.axes))}"
            hint = "a mesh with the axes in that order"
    if got is not None:
        needed = "whole axes in the order of the mesh, closed and without priorities"
        doing = "writing a sharding as placements"
        raise InvalidShardingError(doing, where=str(sharding), got=got, needed=needed, hint=hint)


def from_torch(placements: Sequence[Any], mesh: Mesh, rank: int, mesh_name: str = "mesh") -> TensorSharding:
    """The sharding that placements stand for.

    Args:
        placements: One per axis of the mesh: torch's own, or those of this module.
        mesh: The mesh.
        rank: Number of dimensions of the tensor.
        mesh_name: The mesh name to put into the sharding.

    Raises:
        InvalidShardingError: Another number of placements, a dimension that the tensor does not have, several kinds of
            partial values, or a placement of another kind, such as a strided shard.

    >>> from_torch([Shard(-1), Replicate()], Mesh([("x", 4), ("y", 2)]), rank=2)
    TensorSharding(<@mesh, [{}, {"x"}]>)
    """
    doing = "reading placements"
    placements = as_tuple(placements, doing, "a list of placements, one per axis of the mesh")
    mesh, rank = as_mesh(mesh), as_rank(rank, doing)
    if len(placements) != len(mesh.axes):
        needed = f"{len(mesh.axes)}, one per axis of {mesh}"
        raise InvalidShardingError(doing, got=f"{len(placements)} placements", needed=needed)
    dims: list[list[AxisRef]] = [[] for _ in range(rank)]
    unreduced: list[AxisRef] = []
    kinds: list[ReductionKind] = []
    for name, placement in zip(mesh.axis_names, placements):
        kind = type(placement).__name__
        if kind == "Shard":
            if not -rank <= placement.dim < rank:
                raise InvalidShardingError(doing, got=str(placement), needed=f"a dimension of a tensor of rank {rank}")
            dims[placement.dim].append(AxisRef(name))
        elif kind == "Partial":
            unreduced.append(AxisRef(name))
            kinds.append(_kind(str(placement.reduce_op)))
        elif kind != "Replicate":
            raise InvalidShardingError(doing, got=str(placement), needed="Shard, Replicate or Partial")
    if len(set(kinds)) > 1:
        got = f"partial values of the kinds {', '.join(kind.value for kind in kinds)}"
        raise InvalidShardingError(doing, got=got, needed="one kind")
    kind_of_all = kinds[0] if kinds else ReductionKind.SUM
    return TensorSharding(mesh_name, [DimSharding(axes) for axes in dims], (), unreduced, kind_of_all)


def _kind(name: str) -> ReductionKind:
    try:
        return ReductionKind(name)
    except ValueError:
        names = ", ".join(kind.value for kind in ReductionKind)
        raise InvalidShardingError("reading placements", got=f"partial values by {name}", needed=names) from None
