"""`sdy-add-func-data-flow-edges`: adds edges to arguments of called functions and to results of calls.

Source: docs/semantics/import.md#sdy-add-func-data-flow-edges
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyshardy.ir.functions import SHARDING, calls, functions, is_declaration, main_function
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.shardings import get_sharding
from pyshardy.passes.base import Pass
from pyshardy.passes.importing.add_data_flow_edges import insert_edge
from pyshardy.rules.properties import FUNCTION_EDGE
from pyshardy.transforms.context import PassContext


class AddFuncDataFlowEdges(Pass):
    """Put an `sdy.func_data_flow_edge` after every argument of a function except main, and every result of a call.

    Values that have one keep it.
    """

    name = "sdy-add-func-data-flow-edges"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        main = main_function(op)
        for function in functions(op):
            if function is not main and not is_declaration(function):
                _add_edges(function.region.blocks[0].args, function.place)
        for call in calls(op):
            _add_edges(call.results, call.place)


def _add_edges(values: Sequence[Value], location: Any) -> None:
    previous: Op | None = None
    for value in values:
        if value.type.is_static and not any(user.name == FUNCTION_EDGE for user, _ in value.uses):
            sharding = get_sharding(value)
            attrs = {} if sharding is None else {SHARDING: (sharding,)}
            previous = insert_edge(FUNCTION_EDGE, value, attrs, previous, location)
