"""`sdy-flatten-call-graph`: a function of its own for every call.

Source: docs/semantics/import.md#sdy-flatten-call-graph
"""

from __future__ import annotations

from pyshardy.ir.nodes import Op
from pyshardy.ir.symbols import SymbolTable, calls_in_post_order, clone_function
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext


class FlattenCallGraph(Pass):
    """Copy functions until each is called at most once."""

    name = "sdy-flatten-call-graph"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        symbols = SymbolTable(op)
        seen: set[str] = set()
        for call in calls_in_post_order(op):
            callee = call.attrs["callee"]
            if callee in seen:
                call.set_attr("callee", clone_function(symbols[callee], symbols).attrs["sym_name"])
            seen.add(callee)
