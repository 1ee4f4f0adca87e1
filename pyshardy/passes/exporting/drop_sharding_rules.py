"""`sdy-drop-sharding-rules`: removes rules that no user gave.

Source: docs/semantics/export.md#sdy-drop-sharding-rules
"""

from __future__ import annotations

from pyshardy.ir.attributes import Attributes
from pyshardy.ir.functions import RULE
from pyshardy.ir.op import Op
from pyshardy.ir.op_lists import ops_with
from pyshardy.ir.shared_attributes import SharedOutcomes
from pyshardy.passes.base import Anchor, Pass
from pyshardy.transforms.context import PassContext


class DropShardingRules(Pass):
    """Remove the sharding rules that no user gave."""

    name = "sdy-drop-sharding-rules"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        drop_sharding_rules(op)


def drop_sharding_rules(op: Op) -> None:
    """Remove the rules that are not custom from all ops inside `op`."""
    outcomes = SharedOutcomes(_without_rule)
    for inner in ops_with(op, RULE):
        outcomes.apply(inner)


def _without_rule(attrs: Attributes) -> Attributes:
    return attrs if attrs[RULE].is_custom else attrs.without(RULE)
