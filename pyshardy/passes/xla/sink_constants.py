"""`pyshardy-sink-constants`: gives computations inside loops and branches their own constants."""

from __future__ import annotations

from pyshardy.ir.functions import functions, is_declaration
from pyshardy.ir.nodes import Op, Value
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.xla.simplifications.constants import CONSTANT
from pyshardy.transforms.xla.simplifier import remove_dead


class SinkConstants(Pass):
    """Copy constants into the regions of loops, branches and computations that use them."""

    name = "pyshardy-sink-constants"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        for function in functions(op):
            if not is_declaration(function):
                for block in function.region.blocks:
                    for inner in block:
                        if inner.regions:
                            sink_into(inner)
                    remove_dead(block)


def sink_into(holder: Op) -> None:
    """Copy the constants that a region uses from outside into it, for every region of an op."""
    for region in holder.regions:
        for block in region.blocks:
            copies: dict[Value, Value] = {}
            for op in block:
                for index, value in enumerate(op.operands):
                    owner = value.owner
                    if isinstance(owner, Op) and owner.block is not block and owner.name == CONSTANT:
                        copy = copies.get(value)
                        if copy is None:
                            copy = copies[value] = block.prepend(owner.clone()).result
                        op.set_operand(index, copy)
                if op.regions:
                    sink_into(op)
