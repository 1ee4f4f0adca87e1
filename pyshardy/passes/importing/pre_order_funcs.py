"""`sdy-pre-order-funcs`: callers before callees.

Source: docs/semantics/import.md#sdy-pre-order-funcs
"""

from __future__ import annotations

from pyshardy.ir.nodes import Op
from pyshardy.ir.symbols import pre_order
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext


class PreOrderFuncs(Pass):
    """Move all functions with a body, callers first, to the end of the module."""

    name = "sdy-pre-order-funcs"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        for function in pre_order(op):
            op.region.block.append(function.detach())
