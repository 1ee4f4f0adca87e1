"""`sdy-sharding-constraint-to-reshard`: constraints become reshards.

Source: docs/semantics/export.md#sdy-sharding-constraint-to-reshard
"""

from __future__ import annotations

from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.passes.base import Anchor, Pass
from pyshardy.transforms.context import PassContext


class ShardingConstraintToReshard(Pass):
    """Turn every `sdy.sharding_constraint` into an `sdy.reshard`."""

    name = "sdy-sharding-constraint-to-reshard"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        for constraint in ops_named(op, ("sdy.sharding_constraint",)):
            constraint.rename("sdy.reshard")
