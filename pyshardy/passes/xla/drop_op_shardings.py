"""`pyshardy-drop-op-shardings`: what XLA takes of a program are the shardings of its border, constraints and calls."""

from __future__ import annotations

from pyshardy.ir.functions import SHARDING
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_with
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext


class DropOpShardings(Pass):
    """Drop the shardings on ops that HLO does not keep them on, with a warning."""

    name = "pyshardy-drop-op-shardings"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        dropped: list[Op] = []
        for found in ops_with(op, SHARDING):
            if not _keeps(found):
                found.remove_attr(SHARDING)
                dropped.append(found)
        if dropped:
            context.diagnostics.warn(
                dropped[0],
                f"the shardings on {len(dropped)} ops are left out, as XLA leaves them out: it keeps those of inputs, "
                "outputs, constraints and callbacks; use sdy.sharding_constraint, or view=stablehlo",
            )


def _keeps(op: Op) -> bool:
    if op.name.startswith("sdy."):
        return op.name != "sdy.propagation_barrier"
    return op.name == "stablehlo.custom_call" and "_callback" in str(op.attrs.get("call_target_name"))
