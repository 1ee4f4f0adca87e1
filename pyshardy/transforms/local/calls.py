"""Functions, calls, returns, and computations that hold a body."""

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
    """Local types of arguments and results."""
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
    """The arguments of the body are the operands; the body follows when its end is reached."""
    for arg, operand in zip(op.region.block.args, op.operands):
        check_passes_on(op, local.sharding(operand), op.attrs["in_shardings"][arg.index], local)
        _check_type(op, local.value(operand), local.local_type_of(op, arg))
        local.stand_in(arg, local.value(operand))


def _check_type(op: Op, value: Value, type: ValueType) -> None:
    if value.type is not type:
        raise PassError(op, f"passes on {value.type}, what one device holds, to where {type} is needed")


def localize_same_index(op: Op, local: Localizer) -> None:
    """An op whose results are sharded like its operands."""
    for operand, result in zip(op.operands, op.results):
        check_passes_on(op, local.sharding(operand), local.sharding(result), local)
    local.keep(op)


def localize_branches(op: Op, local: Localizer) -> None:
    """The same with branches that have become local; what ends them is compared with the results."""
    local.keep(op)


def localize_call(op: Op, local: Localizer) -> None:
    """The same call of a function that has become local."""
    callee = local.symbols.ops.get(op.attrs["callee"])
    if callee is not None and callee.name == "func.func":
        for index, operand in enumerate(op.operands):
            check_passes_on(op, local.sharding(operand), arg_sharding(callee, index), local)
        for index, result in enumerate(op.results):
            check_passes_on(op, result_sharding(callee, index), local.sharding(result), local)
    local.keep(op)


def localize_named_computation(op: Op, local: Localizer) -> None:
    """The same with a body that has become local."""
    for arg, operand in zip(op.region.block.args, op.operands):
        check_passes_on(op, local.sharding(operand), local.sharding(arg), local)
    local.keep(op)


def localize_return(op: Op, local: Localizer) -> None:
    """What a function or a branch gives."""
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
    """What ends a body; the ops of a manual computation then take its place."""
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
