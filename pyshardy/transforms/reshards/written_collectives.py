"""Collectives of Shardy in the user's program, which are valid for one sharding of their operand."""

from __future__ import annotations

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import axes_size, join_axes, subtract_axes
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import Meshes, mesh_of
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import get_sharding
from pyshardy.transforms.reshards.operand_shardings import all_reduce_kind, make_all_reduce
from pyshardy.transforms.rewriting.all_to_all import read_params

WRITTEN = frozenset(("sdy.all_gather", "sdy.all_slice", "sdy.all_to_all", "sdy.collective_permute"))
"""The collectives that only move data; a reshard to the same sharding is equivalent."""


def reshard_if_operand_changed(op: Op, meshes: Meshes) -> None:
    """Replace a collective by a reshard if its operand has another sharding than when the collective was written.

    An input whose shardings do not divide it loses axes after propagation, and values computed from it are resharded.

    Args:
        op: One of `WRITTEN`.
        meshes: The meshes of the module.
    """
    after: TensorSharding = op.attrs["out_sharding"]
    before = get_sharding(op.operands[0])
    given = tuple(() for _ in after.dims) if before is None else tuple(dim.axes for dim in before.dims)
    if not _leads_to(op, given, tuple(dim.axes for dim in after.dims), mesh_of(after, meshes)):
        op.rename("sdy.reshard")
        op.replace_attrs({"sharding": after})


def reshard_if_operand_is_whole(op: Op, meshes: Meshes) -> None:
    """Leave to an all-reduce or a reduce-scatter only the axes along which its operand is partial.

    An op with partial results is followed at once by an all-reduce, unless its sharding says that the result is
    partial. So along the other axes the operand is complete. To sum it again would count it several times: a reshard
    takes the place of that sum.

    Args:
        op: One of `REDUCING_RESHARDS`.
        meshes: The meshes of the module.
    """
    after: TensorSharding = op.attrs["out_sharding"]
    before, mesh, axes = get_sharding(op.operands[0]), mesh_of(after, meshes), reduced_axes(op)
    unreduced = () if before is None else before.unreduced
    whole = subtract_axes(axes, unreduced, mesh)
    if not whole:
        return
    partial = subtract_axes(axes, whole, mesh)
    if partial:
        assert before is not None
        left = before.with_unreduced(subtract_axes(unreduced, partial, mesh))
        op.set_operand(0, make_all_reduce(op.operands[0], partial, all_reduce_kind(op), left).insert_before(op).result)
    op.rename("sdy.reshard")
    op.replace_attrs({"sharding": after})


def reduced_axes(op: Op) -> Axes:
    """The axes along which an `sdy.all_reduce` or an `sdy.reduce_scatter` reduces."""
    if op.name == "sdy.all_reduce":
        return tuple(op.attrs["reduction_axes"])
    return sum(op.attrs["reduce_scatter_axes"], ())


def _leads_to(op: Op, before: tuple[Axes, ...], after: tuple[Axes, ...], mesh: Mesh) -> bool:
    """Whether the collective turns one sharding into the other."""

    def joined(dims: tuple[Axes, ...], added: tuple[Axes, ...]) -> list[Axes]:
        return [join_axes(lists, mesh) for lists in zip(dims, added)]

    none = tuple(() for _ in after)
    if op.name == "sdy.all_gather":
        return joined(before, none) == joined(after, op.attrs["gathering_axes"])
    if op.name == "sdy.all_slice":
        return joined(before, op.attrs["slicing_axes"]) == joined(after, none)
    if op.name == "sdy.collective_permute":
        return [axes_size(dim, mesh) for dim in before] == [axes_size(dim, mesh) for dim in after]
    left, arrived = list[Axes](none), list[Axes](none)
    for param in read_params(op):
        left[param.source] = arrived[param.target] = param.axes
    return joined(before, tuple(arrived)) == joined(after, tuple(left))
