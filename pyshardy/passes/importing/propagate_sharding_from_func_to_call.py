"""`sdy-propagate-sharding-from-func-to-call`: gives calls the result shardings of their callee.

Source: docs/semantics/import.md#sdy-propagate-sharding-from-func-to-call
"""

from __future__ import annotations

from pyshardy.ir.functions import SHARDING, calls, result_sharding
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import fill_shardings
from pyshardy.ir.symbols import SymbolTable
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext


class PropagateShardingFromFuncToCall(Pass):
    """Give every call without shardings the shardings of its callee's results."""

    name = "sdy-propagate-sharding-from-func-to-call"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        symbols, meshes = SymbolTable(op), context.meshes
        for call in calls(op):
            if SHARDING in call.attrs:
                continue
            callee = symbols.callee(call)
            found = [result_sharding(callee, result.index) for result in call.results]
            shardings = fill_shardings(found, call.results, meshes)
            if shardings is not None:
                call.set_attr(SHARDING, shardings)
