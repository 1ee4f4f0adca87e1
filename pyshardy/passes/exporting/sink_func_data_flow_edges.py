"""`sdy-sink-func-data-flow-edges`: moves the shardings of function edges onto arguments and calls.

Source: docs/semantics/export.md#sdy-sink-func-data-flow-edges
"""

from __future__ import annotations

from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import get_sharding, set_sharding
from pyshardy.passes.base import Anchor, Pass
from pyshardy.passes.exporting.sink_data_flow_edges import remove_edge
from pyshardy.rules.properties import FUNCTION_EDGE
from pyshardy.transforms.context import PassContext


class SinkFuncDataFlowEdges(Pass):
    """Store the sharding of every function edge on its operand and remove the edge."""

    name = "sdy-sink-func-data-flow-edges"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        for edge in ops_named(op, (FUNCTION_EDGE,)):
            _store(edge)
            remove_edge(edge)


def _store(edge: Op) -> None:
    operand = edge.operands[0]
    sharding = get_sharding(edge.result)
    if sharding is not None:
        set_sharding(operand, sharding)
        return
    old = get_sharding(operand)
    if old is not None:
        set_sharding(operand, TensorSharding.fully_replicated(old.mesh, old.rank, is_open=True))
