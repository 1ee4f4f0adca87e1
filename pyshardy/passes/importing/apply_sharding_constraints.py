"""`sdy-apply-sharding-constraints`: writes a constraint's sharding onto its input if nothing else decides it.

Source: docs/semantics/import.md#sdy-apply-sharding-constraints
"""

from __future__ import annotations

from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.dataflow import edge_held, source_uses
from pyshardy.ir.edge_tensors import manual_view_of
from pyshardy.ir.functions import RULE, functions, is_declaration, main_function, result_sharding, return_op
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.numbering import Numbering
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.program_index import FunctionResultPlace
from pyshardy.ir.shardings import get_sharding, holder_of, module_meshes, set_sharding
from pyshardy.ir.symbols import post_order
from pyshardy.passes.base import Pass
from pyshardy.propagation.origins import CONSTRAINT
from pyshardy.propagation.program import NO_VALUE, OpKind, OpNode, Program, ValueInfo
from pyshardy.rules.properties import EDGE, FUNCTION_EDGE
from pyshardy.rules.rule_builder import identity_rule
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.debug_info import DebugInfo, DebugOptions

_MANUAL = "sdy.manual_computation"
_CONSTRAINING = (CONSTRAINT, _MANUAL)


class ApplyShardingConstraints(Pass):
    """Write the sharding of a constraint onto its input if nothing else decides it.

    Attributes:
        debug_sharding_origins: Whether to record, per axis, the annotation it originates from.
        debug_propagation_edge_sharding: Whether to record, per axis, the op and the step that propagated it.
    """

    name = "sdy-apply-sharding-constraints"

    debug_sharding_origins: bool = False
    debug_propagation_edge_sharding: bool = False

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        main = main_function(op)
        debug = DebugOptions(self.debug_sharding_origins, self.debug_propagation_edge_sharding)
        info = DebugInfo(op, context, debug, *outline(op)) if debug else None
        for inner in [
            inner for function in post_order(op) for inner in ops_named(function, _CONSTRAINING, post_order=True)
        ]:
            if inner.name == CONSTRAINT:
                _redirect_later_uses(inner, main)
                _apply(inner, inner.attrs["sharding"], inner.operands[0], info)
            else:
                for index, sharding in enumerate(inner.attrs["in_shardings"]):
                    _apply(inner, sharding, inner.operands[index], info)
        if info is not None:
            info.write()


def _redirect_later_uses(first: Op, main: Op) -> None:
    """At the first constraint of a chain on an unconstrained value, redirect later uses of the value to the chain."""
    value = first.operands[0]
    last = first
    while (user := last.result.only_user()) is not None and user.name == CONSTRAINT:
        last = user
    if (
        last is first
        or _is_constraint_result(value)
        or not _is_free(value)
        or any(user is not first and user.name in _CONSTRAINING for user in value.users())
        or any(user.name in _CONSTRAINING for user in last.result.users())
    ):
        return

    def is_redirected(user: Op, index: int) -> bool:
        if user is first or user.block is not last.block or not last.is_before(user):
            return False
        return user.name != "func.return" or user.parent_op is not main

    value.replace_uses(last.result, is_redirected)


def _apply(op: Op, sharding: TensorSharding, value: Value, info: DebugInfo | None) -> None:
    """Write the sharding that `op` requires onto `value` if it is closed and the value's sharding is otherwise free."""
    if (
        not sharding.is_fully_closed
        or holder_of(value) is None
        or not _is_free(value)
        or any(_wanted(*use) not in (None, sharding) for use in value.uses)
    ):
        return
    if _is_on_edge(value):
        _constrain_behind(op, sharding, value)
        return
    set_sharding(value, sharding)
    if info is not None and op.name == CONSTRAINT:
        info.apply(op, sharding)
    if op.name == CONSTRAINT and RULE not in op.attrs and value.type.is_static:
        assert value.type.shape is not None
        op.set_attr(RULE, identity_rule(value.type.shape))


def _constrain_behind(op: Op, sharding: TensorSharding, value: Value) -> None:
    """Put the constraint right after a value whose sharding is shared, and redirect all other uses to it."""
    constraint = (
        op.detach()
        if op.name == CONSTRAINT
        else Op(CONSTRAINT, [value], [value.type], {"sharding": sharding}, location=op.place)
    )
    if value.defining_op is None:
        value.block.prepend(constraint)
    else:
        constraint.insert_after(value.defining_op)
    value.replace_other_uses(constraint)
    if sharding.unreduced:
        current = get_sharding(value) or TensorSharding.fully_replicated(sharding.mesh, value.type.rank, is_open=True)
        set_sharding(value, current.with_unreduced(sharding.unreduced, sharding.reduction))


def _is_free(value: Value) -> bool:
    """Whether the value has no sharding, or one without constraints."""
    sharding = get_sharding(value)
    if sharding is None:
        return True
    op = value.defining_op
    says_nothing = (
        not sharding.replicated
        and not sharding.unreduced
        and not any(dim.axes or not dim.is_open or dim.priority is not None for dim in sharding.dims)
    )
    return says_nothing and (bool(sharding.dims) or (op is not None and len(op.results) > 1))


def _wanted(user: Op, index: int) -> TensorSharding | None:
    """The sharding that a user constrains its operand to."""
    if user.name == CONSTRAINT:
        found: TensorSharding = user.attrs["sharding"]
        return found
    return user.attrs["in_shardings"][index] if user.name == _MANUAL else None


def _is_constraint_result(value: Value) -> bool:
    return value.defining_op is not None and value.defining_op.name == CONSTRAINT


def _is_on_edge(value: Value) -> bool:
    """Whether the value shares its sharding with others through an edge."""
    op = value.defining_op
    return (op is not None and op.name in (EDGE, FUNCTION_EDGE)) or edge_held(value) is not None


def outline(root: Op) -> tuple[Program, list[Value | FunctionResultPlace]]:
    """The ops and values of a module, and what the numbers of values stand for.

    No op has a rule, so the module may be one that propagation refuses. Only edges of manual computations have tensors.

    Args:
        root: The module.
    """
    numbering = Numbering(root)
    numbers, ops = numbering.value_numbers, numbering.op_numbers

    def node(op: Op) -> OpNode:
        view = manual_view_of(op) if op.name == EDGE else None
        uses = source_uses(op.operands[0]) if view is not None else []
        sources = [number(holder_of(user.operands[index])) for user, index in uses]
        operands, results = (tuple(numbers[value] for value in values) for values in (op.operands, op.results))
        parent = -1 if op.parent_op is None else ops[op.parent_op]
        return OpNode(OpKind(op.name), operands, results, tuple(sources), parent, view)

    def number(value: Value | None) -> int:
        return NO_VALUE if value is None else numbers[value]

    values = [
        ValueInfo(None, number(holder_of(value)), ops[value.defining_op or value.block.parent_op])
        for value in numbering.values
    ]
    shardings = [get_sharding(value) for value in numbering.values]
    places: list[Value | FunctionResultPlace] = [*numbering.values]
    for function in functions(root):
        for index in range(0 if is_declaration(function) else len(return_op(function).operands)):
            values.append(ValueInfo(None, len(values), ops[function]))
            shardings.append(result_sharding(function, index))
            places.append(FunctionResultPlace(function, index))
    return Program.of(module_meshes(root), values, [*map(node, numbering.ops)], shardings), places
