"""Functions, calls, returns, and computations that hold a body."""

from __future__ import annotations

from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import arg_sharding, is_declaration, result_sharding
from pyshardy.ir.nodes import Op
from pyshardy.passes.partitioning.local.localizer import Localizer


def localize_function(op: Op, local: Localizer) -> None:
    """Local types of arguments and results."""
    inputs, results = local.attrs.function_types(op.attrs["function_type"])
    if not is_declaration(op):
        for arg in op.region.blocks[0].args:
            local.localize(op, arg)
    op.attrs["function_type"] = (
        [local.local_type(op, type, arg_sharding(op, index)) for index, type in enumerate(inputs)],
        [local.local_type(op, type, result_sharding(op, index)) for index, type in enumerate(results)],
    )


def inline_manual_computation(op: Op, local: Localizer) -> None:
    """The arguments of the body are the operands; the body follows when its end is reached."""
    for arg, operand in zip(op.region.block.args, op.operands):
        given = local.value(operand)
        type = local.local_type_of(op, arg)
        if given.type is not type:
            raise PassError(
                op,
                f"takes operand {arg.index} as {op.attrs['in_shardings'][arg.index]}, but it is sharded "
                f"{local.sharding(operand)}",
            )
        local.stand_in(arg, given)


def leave_region(op: Op, local: Localizer) -> None:
    """What ends a body; the ops of a manual computation then take its place."""
    parent = op.parent_op
    if parent is None or parent.name != "sdy.manual_computation":
        local.keep(op)
        return
    values = local.values(op.operands)
    for result, value in zip(parent.results, values):
        if value.type is not local.local_type_of(parent, result):
            raise PassError(
                parent,
                f"gives result {result.index} as {parent.attrs['out_shardings'][result.index]}, but its body gives "
                f"{value.type}",
            )
    for inner in parent.region.block:
        if inner is not op:
            inner.detach().insert_before(parent)
    local.replace(parent, values)
