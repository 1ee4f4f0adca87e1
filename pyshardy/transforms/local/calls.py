"""Make functions, calls, returns, and computations with a body work on shards."""

from __future__ import annotations

from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import arg_sharding, is_declaration, result_sharding
from pyshardy.ir.nodes import Op, Value, ValueType
from pyshardy.propagation.views import strip_manual_axes
from pyshardy.rules.properties import CONDITIONALS
from pyshardy.transforms.local.checks import check_passes_on
from pyshardy.transforms.local.localizer import Localizer

_BRANCHES = CONDITIONALS | {"sdy.named_computation"}


def localize_function(op: Op, local: Localizer) -> None:
    """Give arguments and results local types."""
    inputs, results = local.attrs.function_types(op.attrs["function_type"])
    if not is_declaration(op):
        for arg in op.region.blocks[0].args:
            local.localize(op, arg)
    op.set_attr(
        "function_type",
        (
            [local.local_type(op, type, arg_sharding(op, index)) for index, type in enumerate(inputs)],
            [local.local_type(op, type, result_sharding(op, index)) for index, type in enumerate(results)],
        ),
    )


def inline_manual_computation(op: Op, local: Localizer) -> None:
    """Replace the arguments of the body by the operands. The body itself moves out when its end is reached."""
    for arg, operand in zip(op.region.block.args, op.operands):
        check_passes_on(op, local.sharding(operand), op.attrs["in_shardings"][arg.index], local)
        _check_type(op, local.value(operand), local.local_type_of(op, arg))
        local.stand_in(arg, local.value(operand))


def _check_type(op: Op, value: Value, type: ValueType) -> None:
    if value.type is not type:
        raise PassError(op, f"passes on {value.type}, a shard, to a value whose shards have type {type}")


def localize_same_index(op: Op, local: Localizer) -> None:
    """Keep an op whose results are sharded like its operands."""
    for operand, result in zip(op.operands, op.results):
        check_passes_on(op, local.sharding(operand), local.sharding(result), local)
    local.keep(op)


def localize_branches(op: Op, local: Localizer) -> None:
    """Keep an op with branches. The values that they return are checked when their ends are reached."""
    local.keep(op)


def localize_call(op: Op, local: Localizer) -> None:
    """Keep a call; check its operands and results against the function."""
    callee = local.symbols.ops.get(op.attrs["callee"])
    if callee is not None and callee.name == "func.func":
        for index, operand in enumerate(op.operands):
            check_passes_on(op, local.sharding(operand), arg_sharding(callee, index), local)
        for index, result in enumerate(op.results):
            check_passes_on(op, result_sharding(callee, index), local.sharding(result), local)
    local.keep(op)


def localize_named_computation(op: Op, local: Localizer) -> None:
    """Keep an op with a body."""
    for arg, operand in zip(op.region.block.args, op.operands):
        check_passes_on(op, local.sharding(operand), local.sharding(arg), local)
    local.keep(op)


def localize_return(op: Op, local: Localizer) -> None:
    """Check the values that a function or a branch returns."""
    parent = op.parent_op
    assert parent is not None
    if parent.name == "func.func":
        for index, value in enumerate(op.operands):
            check_passes_on(op, local.sharding(value), result_sharding(parent, index), local)
    elif parent.name in _BRANCHES or (parent.name == "stablehlo.while" and op.block is parent.regions[1].block):
        for value, result in zip(op.operands, parent.results):
            check_passes_on(op, local.sharding(value), local.sharding(result), local)
    local.keep(op)


def leave_region(op: Op, local: Localizer) -> None:
    """The end of a body. The ops of a manual computation then replace it."""
    parent = op.parent_op
    if parent is None or parent.name != "sdy.manual_computation":
        localize_return(op, local)
        return
    values = local.values(op.operands)
    manual = parent.attrs["manual_axes"]
    for result, operand, value in zip(parent.results, op.operands, values):
        inner = strip_manual_axes(parent.attrs["out_shardings"][result.index], manual)
        check_passes_on(op, local.sharding(operand), inner, local)
        _check_type(op, value, local.local_type_of(parent, result))
    for body in parent.region.block:
        if body is not op:
            body.detach().insert_before(parent)
    local.replace(parent, values)
