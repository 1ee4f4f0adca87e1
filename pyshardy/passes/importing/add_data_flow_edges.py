"""`sdy-add-data-flow-edges`: adds one edge op per owner of every data-flow op.

Source: docs/semantics/import.md#sdy-add-data-flow-edges
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyshardy.ir.dataflow import DATA_FLOW_OPS, block_arg_owners, edge_of
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import get_sharding
from pyshardy.passes.base import Pass
from pyshardy.rules.properties import EDGE
from pyshardy.transforms.context import PassContext


class AddDataFlowEdges(Pass):
    """Put an `sdy.data_flow_edge` after every owner of an edge."""

    name = "sdy-add-data-flow-edges"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        add_data_flow_edges(op)


def add_data_flow_edges(root: Op, names: Iterable[str] = DATA_FLOW_OPS) -> None:
    """Add edges to all data-flow ops inside `root`, or to those of some names.

    Owners that have an edge keep it.

    Source: docs/semantics/import.md#sdy-add-data-flow-edges
    """
    for op in ops_named(root, names, post_order=True):
        _add_edges(op)


def _add_edges(op: Op) -> None:
    for group in (block_arg_owners(op), op.results):
        previous: Op | None = None
        for owner in group:
            if owner.type.is_static and edge_of(owner) is None:
                sharding = get_sharding(owner)
                attrs = {} if sharding is None else {"sharding": sharding}
                previous = insert_edge(EDGE, owner, attrs, previous)


def insert_edge(name: str, owner: Value, attrs: dict[str, Any], previous: Op | None, location: Any = None) -> Op:
    """Put an edge op after a value, or after the previous edge, and redirect all uses of the value to it."""
    op = owner.defining_op
    if location is None:
        location = owner.place if op is None else op.place
    edge = Op(name, (), [owner.type], attrs, location=location)
    owner.replace_uses(edge.result)
    edge.add_operand(owner)
    if previous is not None:
        return edge.insert_after(previous)
    return owner.block.prepend(edge) if op is None else edge.insert_after(op)
