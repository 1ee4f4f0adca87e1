"""`pyshardy-gather-before`: gathers operands instead of the result if that sends less."""

from __future__ import annotations

from collections.abc import Sequence

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import join_axes, subtract_axes
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.core.sharding_on_mesh import Meshes, mesh_of
from pyshardy.ir.functions import RULE
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import get_sharding, set_sharding
from pyshardy.passes.base import Anchor, Pass
from pyshardy.reshard.around_cost import reshard_cost
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.reshards.causes import MADE
from pyshardy.transforms.reshards.operand_shardings import make_reshard

_RESHARD = "sdy.reshard"
_SLICE = "stablehlo.slice"
_GROWING = frozenset(("stablehlo.broadcast_in_dim", "stablehlo.pad"))
"""Ops that only move data, into a result that may be larger than their operands."""


class GatherBefore(Pass):
    """Gather the operands of an op instead of its result, if that sends less.

    Operands of an op are resharded until they are compatible, for example by moving an axis to another dimension. If
    the result is then gathered along that axis, the operands can be gathered instead. So can those of a pad or a
    broadcast, which are smaller than the result. A value that is computed from a slice alone is gathered at the slice.
    """

    name = "pyshardy-gather-before"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        waiting = list(ops_named(op, (_RESHARD,)))[::-1]
        while waiting:
            reshard = waiting.pop()
            made = reshard.operands[0].defining_op if reshard.block is not None else None
            if made is not None and made.name not in MADE and _is_plain(made, reshard):
                waiting += _gather_before(made, reshard, context.meshes)


def _is_plain(op: Op, reshard: Op) -> bool:
    """Whether an op has a rule and a single result that only a reshard uses."""
    types = [value.type for value in (*op.operands, *op.results)]
    return (
        len(op.results) == 1
        and op.result.only_user() is reshard
        and RULE in op.attrs
        and (
            op.name in _GROWING or _is_of_slice(op.result) or any(_source(value) is not value for value in op.operands)
        )
        and all(type.is_static and 0 not in (type.shape or ()) for type in types)
    )


def _source(value: Value) -> Value:
    """The value before it is resharded."""
    op = value.defining_op
    return op.operands[0] if op is not None and op.name == _RESHARD else value


def _is_of_slice(value: Value) -> bool:
    """Whether a value is computed from a single slice, which may be so small that completing its sum is cheap."""
    op = value.defining_op
    while op is not None and op.name != _SLICE and len(op.operands) == 1 and op.operands[0].only_user() is op:
        op = op.operands[0].defining_op
    return op is not None and op.name == _SLICE and op is not value.defining_op


def _gather_before(op: Op, reshard: Op, meshes: Meshes) -> list[Op]:
    """Reshard the operands of an op to match the gathered result; return the new reshards, if any."""
    values = (*op.operands, op.result)
    shardings = [get_sharding(value) for value in values]
    target: TensorSharding = reshard.attrs["sharding"]
    own = shardings[-1]
    if (
        own is None
        or own.mesh != target.mesh
        or any(one and (one.mesh != own.mesh or one.unreduced) for one in shardings)
    ):
        return []
    mesh = mesh_of(own, meshes)
    lost = subtract_axes(tuple(own.all_axes()), tuple(target.all_axes()), mesh)
    if not lost or any(one and one.unreduced for one in shardings):
        return []
    wanted = [one and _without(one, lost, meshes) for one in shardings]
    cost, old_cost = _cost(op, wanted, target, meshes), _cost(op, shardings, target, meshes)
    if cost > old_cost or (cost == old_cost and not _is_of_slice(op.result)):
        return []
    found = []
    for index, (value, sharding) in enumerate(zip(op.operands, wanted)):
        if sharding is not None and sharding != shardings[index]:
            source = _source(value)
            made = make_reshard(source, sharding).insert_before(op)
            made.location = reshard.location if value.defining_op is None else value.defining_op.location
            op.set_operand(index, made.result)
            found.append(made)
            old = value.defining_op
            if source is not value and old is not None and not value.uses:
                old.erase()
    assert wanted[-1] is not None
    set_sharding(op.result, wanted[-1])
    return found


def _without(sharding: TensorSharding, lost: Axes, meshes: Meshes) -> TensorSharding:
    mesh = mesh_of(sharding, meshes)
    kept = [join_axes([subtract_axes(dim.axes, lost, mesh)], mesh) for dim in sharding.dims]
    return sharding.with_dims(map(DimSharding, kept))


def _cost(op: Op, shardings: Sequence[TensorSharding | None], target: TensorSharding, meshes: Meshes) -> int:
    """The number of elements that every device sends to reshard the operands, and the result to its target."""
    total = reshard_cost(shardings[-1], target, op.result.type.shape or (), meshes)
    for value, sharding in zip(op.operands, shardings):
        total += reshard_cost(get_sharding(_source(value)), sharding, value.type.shape or (), meshes)
    return total
