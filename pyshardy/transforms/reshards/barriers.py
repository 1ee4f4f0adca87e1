"""Looking through `sdy.propagation_barrier`, and removing it."""

from __future__ import annotations

from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding, is_equivalent, is_unsharded
from pyshardy.ir.dataflow import PROPAGATION_BARRIER, is_data_flow_op
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.shardings import ModuleMeshes, get_sharding
from pyshardy.transforms.reshards.operand_shardings import make_reshard


def before_barriers(value: Value) -> Value:
    """The operand of the first barrier in a chain of barriers; other values unchanged."""
    while True:
        op = value.defining_op
        if op is None or op.name != PROPAGATION_BARRIER:
            return value
        value = op.operands[0]


def sharding_before_barriers(value: Value) -> TensorSharding | None:
    """The sharding of that operand."""
    return get_sharding(before_barriers(value))


def remove_barrier(op: Op, _: ModuleMeshes) -> None:
    """Remove a barrier. It still counts for reshards for calls and data flow, but not for others."""
    value, wanted = op.operands[0], get_sharding(op.result)
    sharding = get_sharding(value)
    same = is_unsharded(sharding) if wanted is None else is_equivalent(wanted, sharding)
    if not same:
        target = wanted or TensorSharding.fully_replicated(_mesh_of(sharding), value.type.rank)
        reshard = make_reshard(value, target).insert_before(op)
        op.result.replace_uses(reshard.result, only=lambda user, _: _is_border(user))
        if not reshard.has_uses():
            reshard.erase()
    op.result.replace_uses(value)
    op.erase()


def _mesh_of(sharding: TensorSharding | None) -> str | Mesh:
    assert sharding is not None
    return sharding.mesh


def _is_border(op: Op) -> bool:
    return op.is_terminator or op.name == "func.call" or is_data_flow_op(op)
