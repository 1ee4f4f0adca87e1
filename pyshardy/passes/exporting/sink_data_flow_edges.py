"""`sdy-sink-data-flow-edges`: moves the shardings of edges back onto the data-flow ops.

Source: docs/semantics/export.md#sdy-sink-data-flow-edges
"""

from __future__ import annotations

from collections.abc import Sequence

from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.dataflow import DATA_FLOW_OPS, block_arg_owners, edge_of
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import results_attribute, set_block_arg_shardings
from pyshardy.passes.base import Anchor, Pass
from pyshardy.rules.properties import EDGE
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.debug_info import EDGES_ATTRIBUTE, ORIGINS

_WITH_EDGES = DATA_FLOW_OPS | {EDGE}


class SinkDataFlowEdges(Pass):
    """Store the shardings of all edges on their data-flow ops and remove the edges.

    Attributes:
        sink_debug_sharding_origins: Whether to move the origins on the edges onto the ops.
        sink_debug_propagation_edge_sharding: Whether to move the propagation edges on the edges onto the ops.
    """

    name = "sdy-sink-data-flow-edges"
    anchor = Anchor.FUNCTION

    sink_debug_sharding_origins: bool = False
    sink_debug_propagation_edge_sharding: bool = False

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        kinds = [ORIGINS] * self.sink_debug_sharding_origins + [
            EDGES_ATTRIBUTE
        ] * self.sink_debug_propagation_edge_sharding
        for inner in ops_named(op, _WITH_EDGES):
            if inner.name == EDGE:
                remove_edge(inner)
            else:
                _sink_debug_info(inner, kinds, context.attrs)
                sink_block_arg_edges(inner)
                sink_result_edges(inner)


def sink_block_arg_edges(op: Op) -> None:
    """Store the shardings of the edges of the block arguments, if any edge has one."""
    shardings = _edge_shardings(block_arg_owners(op))
    if shardings is not None:
        set_block_arg_shardings(op, shardings)


def sink_result_edges(op: Op) -> None:
    """Store the shardings of the edges of the results, if any edge has one."""
    shardings = _edge_shardings(op.results)
    if shardings is not None:
        op.set_attr(results_attribute(op), shardings)


def _sink_debug_info(op: Op, kinds: Sequence[str], attrs: AttrTable) -> None:
    """Store the debug attributes of the edges, one entry for each edge.

    An edge without propagation edges has no entry for them, because MLIR cannot parse the text of an empty entry.
    """
    by_prefix = {
        prefix: [edge for edge in map(edge_of, owners) if edge is not None]
        for prefix, owners in (("block_arg", block_arg_owners(op)), ("result", op.results))
    }
    for name in kinds:
        for prefix, edges in by_prefix.items():
            known = [edge for edge in edges if name != EDGES_ATTRIBUTE or name in edge.attrs]
            entries = ", ".join(str(edge.attrs.get(name, "{}")) for edge in known)
            op.set_attr(name.replace("sdy.", f"sdy.{prefix}_"), attrs.parse(f"[{entries}]"))


def _edge_shardings(owners: Sequence[Value]) -> tuple[TensorSharding, ...] | None:
    """One sharding per owner, open for owners without one; None if no edge has a sharding."""
    edges = [edge_of(owner) for owner in owners]
    found: list[TensorSharding | None] = [None if edge is None else edge.attrs.get("sharding") for edge in edges]
    first = next((sharding for sharding in found if sharding is not None), None)
    if first is None:
        return None
    return tuple(
        sharding or TensorSharding.fully_replicated(first.mesh, owner.type.rank, is_open=True)
        for sharding, owner in zip(found, owners)
    )


def remove_edge(edge: Op) -> None:
    """Make the users of an edge use its input."""
    edge.result.replace_uses(edge.operands[0])
    edge.erase()
