"""`pyshardy-drop-op-shardings`: removes the shardings that XLA ignores."""

from __future__ import annotations

from pyshardy.ir.functions import SHARDING
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_with
from pyshardy.passes.base import Pass
from pyshardy.passes.exporting.remove_propagation_debug_info import without_debug_info
from pyshardy.transforms.context import PassContext


class DropOpShardings(Pass):
    """Remove shardings of ops, with a warning, unless HLO keeps them: on the ops of the dialect and on callbacks."""

    name = "pyshardy-drop-op-shardings"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        dropped: list[Op] = []
        for found in ops_with(op, SHARDING):
            if not _keeps(found):
                found.attrs = without_debug_info(found.attrs.without(SHARDING))  # an edge without a sharding is refused
                dropped.append(found)
        if dropped:
            context.diagnostics.warn(
                dropped[0],
                f"the shardings on {len(dropped)} ops are ignored, as in XLA, which keeps only those of inputs, "
                "outputs, constraints and callbacks; use sdy.sharding_constraint, or view=stablehlo",
            )


def _keeps(op: Op) -> bool:
    if op.name.startswith("sdy."):
        return op.name != "sdy.propagation_barrier"
    return op.name == "stablehlo.custom_call" and "_callback" in str(op.attrs.get("call_target_name"))
