"""`sdy-export-named-computations`: turns named computations into functions again.

Source: docs/semantics/export.md#sdy-export-named-computations
"""

from __future__ import annotations

from typing import Any

from pyshardy.ir.attributes import Attributes
from pyshardy.ir.functions import SHARDING
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.symbols import ORIGINAL_NAME, SymbolTable
from pyshardy.passes.base import Pass
from pyshardy.passes.exporting.sink_data_flow_edges import remove_edge, sink_block_arg_edges, sink_result_edges
from pyshardy.rules.properties import EDGE
from pyshardy.transforms.context import PassContext

_OWN_ATTRIBUTES = frozenset(("name", "in_shardings", "out_shardings", "execution_thread"))


class ExportNamedComputations(Pass):
    """Move the body of every named computation into a new private function, and call it."""

    name = "sdy-export-named-computations"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        symbols = SymbolTable(op)
        for computation in ops_named(op, ("sdy.named_computation",), post_order=True):
            _export(computation, symbols)


def _export(op: Op, symbols: SymbolTable) -> None:
    sink_block_arg_edges(op)
    sink_result_edges(op)
    for value in (*op.region.block.args, *op.results):
        for user in value.users():
            if user.name == EDGE:
                remove_edge(user)
    attrs = {name: attr for name, attr in op.attrs.items() if name not in _OWN_ATTRIBUTES}
    attrs["callee"] = symbols.insert(_function(op))
    if "out_shardings" in op.attrs:
        attrs[SHARDING] = op.attrs["out_shardings"]
    types = [result.type for result in op.results]
    call = Op("func.call", op.operands, types, attrs, location=op.place).insert_before(op)
    for old, new in zip(op.results, call.results):
        old.replace_uses(new)
    op.erase()


def _function(op: Op) -> Op:
    """A detached function that takes over the body of the computation."""
    name = op.attrs["name"]
    types = [[operand.type for operand in op.operands], [result.type for result in op.results]]
    attrs: dict[str, Any] = {
        "sym_name": name,
        "sym_visibility": "private",
        "function_type": (tuple(types[0]), tuple(types[1])),
        ORIGINAL_NAME: name,
    }
    if "execution_thread" in op.attrs:
        attrs["execution_thread"] = op.attrs["execution_thread"]
    if "in_shardings" in op.attrs:
        attrs["arg_attrs"] = tuple(Attributes({SHARDING: sharding}) for sharding in op.attrs["in_shardings"])
    function = Op("func.func", attrs=attrs, region_count=1, location=op.place)
    function.region.take_body(op.region)
    function.region.block.terminator.rename("func.return")
    return function
