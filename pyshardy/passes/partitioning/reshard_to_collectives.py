"""`sdy-reshard-to-collectives`: turns reshards into collectives.

Source: docs/semantics/reshards-and-collectives.md#from-reshards-to-collectives
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyshardy.core.collectives import Collective, CollectiveKind
from pyshardy.core.sharding import TensorSharding, is_equivalent
from pyshardy.core.sharding_on_mesh import Meshes, mesh_of
from pyshardy.errors import InvalidShardingError
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import get_sharding
from pyshardy.passes.base import Anchor, Pass
from pyshardy.reshard.collective_plan import CollectivePlan, is_possible, plan_collectives
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.reshards.barriers import before_barriers, sharding_before_barriers
from pyshardy.transforms.rewriting.all_to_all import make_params

_AXES: Mapping[CollectiveKind, str] = {
    CollectiveKind.ALL_GATHER: "gathering_axes",
    CollectiveKind.ALL_SLICE: "slicing_axes",
}


class ReshardToCollectives(Pass):
    """Turn every reshard into collectives; remove it if it changes nothing.

    A reshard from or to a single device, or between meshes with different axes, stays.

    Attributes:
        keep_redundant_reshards: Whether to keep reshards between equivalent shardings.
    """

    keep_redundant_reshards: bool = False

    name = "sdy-reshard-to-collectives"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        meshes = context.meshes
        reshards = ops_named(op, ("sdy.reshard",), post_order=True)
        shardings = [sharding_before_barriers(reshard.operands[0]) for reshard in reshards]
        for reshard, sharding in zip(reshards, shardings):
            if not (self.keep_redundant_reshards and is_equivalent(reshard.attrs["sharding"], sharding)):
                _replace(reshard, sharding, meshes, context.attrs)


def _replace(op: Op, sharding: TensorSharding | None, meshes: Meshes, attrs: AttrTable) -> None:
    """Replace a reshard by collectives, if that is possible.

    Args:
        op: The reshard.
        sharding: The sharding of its operand before any reshard was replaced. The operand may have changed since: if a
            reshard between equal meshes of different names was removed, its mesh now has another name.
        meshes: The meshes of the module.
        attrs: The attributes of the context.
    """
    value = before_barriers(op.operands[0])
    now = get_sharding(value)
    target: TensorSharding = op.attrs["sharding"]
    before_mesh = None if sharding is None else mesh_of(sharding, meshes)
    plan = _plan(op, now, meshes) if is_possible(sharding, target, before_mesh, mesh_of(target, meshes)) else None
    if plan is None:
        return
    if target.is_fully_replicated and (sharding is None or sharding.is_fully_replicated):
        value = op.operands[0]
    for collective in plan:
        value = make_collective(collective, value, attrs, op.place).insert_before(op).result
    op.result.replace_uses(value)
    op.erase()


def _plan(op: Op, sharding: TensorSharding | None, meshes: Meshes) -> CollectivePlan | None:
    target, shape = op.attrs["sharding"], op.result.type.shape or ()
    before_mesh = None if sharding is None else mesh_of(sharding, meshes)
    try:
        return plan_collectives(sharding, target, before_mesh, mesh_of(target, meshes), shape)
    except InvalidShardingError as error:
        raise PassError(op, str(error)) from error


def make_collective(collective: Collective, value: Value, attrs: AttrTable, location: Any) -> Op:
    """A detached collective on a value; its type is that of the value."""
    found: dict[str, Any] = {"out_sharding": collective.after}
    if collective.kind in _AXES:
        found[_AXES[collective.kind]] = collective.axes
    elif collective.kind is CollectiveKind.ALL_TO_ALL:
        found["params"] = make_params(collective.params, attrs)
    return Op(f"sdy.{collective.kind.value}", [value], [value.type], found, location=location)
