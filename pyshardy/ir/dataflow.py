"""Data-flow ops and their edges.

An edge joins sources (operands of the op or of a region's terminator) with targets (results, block arguments) that
must be sharded alike. One target owns the edge. When the owner's only use is an `sdy.data_flow_edge`, that op holds
the sharding of all targets.

Source: docs/semantics/representation.md#data-flow-edges
"""

from __future__ import annotations

from pyshardy.ir.blocks import Use, Value
from pyshardy.ir.op import Op
from pyshardy.rules.ops import ops_that
from pyshardy.rules.properties import CONDITIONALS, EDGE
from pyshardy.rules.traits import DataFlow

PROPAGATION_BARRIER = "sdy.propagation_barrier"

_SAME_INDEX_OPS = ops_that(lambda traits: traits.data_flow is DataFlow.SAME_INDEX)
_COMPUTATIONS = ops_that(lambda traits: traits.data_flow is DataFlow.COMPUTATION)
DATA_FLOW_OPS = _SAME_INDEX_OPS | CONDITIONALS | _COMPUTATIONS


def is_data_flow_op(op: Op) -> bool:
    """Whether the op has edges."""
    return op.name in DATA_FLOW_OPS


def block_arg_owners(op: Op) -> list[Value]:
    """The block arguments that own an edge."""
    return op.region.block.args if op.name in _COMPUTATIONS else []


def owners(op: Op) -> list[Value]:
    """All owners of edges of an op: block arguments, then results."""
    return [*block_arg_owners(op), *op.results]


def op_of_owner(owner: Value) -> Op:
    """The op whose edge a value may own: its defining op, or the op around its block."""
    return owner.defining_op or owner.block.parent_op


def owns_edge(value: Value) -> bool:
    """Whether a value owns an edge."""
    op = op_of_owner(value)
    return op.name in (DATA_FLOW_OPS if value.defining_op is not None else _COMPUTATIONS)


def owner_of(target: Value) -> Value:
    """The owner of the edge that has this result or block argument of a data-flow op as a target."""
    if target.defining_op is None and target.block.parent_op.name == "stablehlo.while":
        return target.block.parent_op.results[target.index]
    return target


def targets_besides_owner(owner: Value) -> list[Value]:
    """The other targets of an edge: for a loop, the arguments of the condition and of the body."""
    op = owner.defining_op
    if op is None or op.name != "stablehlo.while":
        return []
    return [region.block.args[owner.index] for region in op.regions]


def source_uses(owner: Value) -> list[Use]:
    """The operands that are sources of the edge of `owner`, in order."""
    index = owner.index
    op = owner.defining_op
    if op is None:
        return [(owner.block.parent_op, index)]
    if op.name in CONDITIONALS:
        return [(region.block.terminator, index) for region in op.regions]
    if op.name == "stablehlo.optimization_barrier":
        return [(op, index)]
    if op.name == "stablehlo.while":
        return [(op, index), (op.regions[1].block.terminator, index)]
    return [(op.region.block.terminator, index)]


def edge_of(owner: Value) -> Op | None:
    """The edge op of an owner: its only user, if that is an edge op."""
    user = owner.only_user()
    return user if user is not None and user.name == EDGE else None


def edge_of_source(op: Op, index: int) -> Op | None:
    """The edge of which operand `index` of `op` is a source; None where the reference finds none.

    It does not recognise operands of named and manual computations.

    Source: docs/semantics/representation.md#edges-that-are-not-found
    """
    if op.name in _SAME_INDEX_OPS:
        return edge_of(op.results[index])
    parent = op.parent_op
    if parent is None or not op.is_terminator or not is_data_flow_op(parent):
        return None
    if parent.name == "stablehlo.while" and op.block is parent.regions[0].block:
        return None
    return edge_of(parent.results[index])


def edge_held(value: Value) -> Op | None:
    """The edge op that holds the sharding of a result or block argument of a data-flow op, if there is one."""
    op = value.defining_op or value.block.parent_op
    return edge_of(owner_of(value)) if is_data_flow_op(op) else None
