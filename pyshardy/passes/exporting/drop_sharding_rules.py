"""`sdy-drop-sharding-rules` (export spec, section 4.12)."""

from __future__ import annotations

from pyshardy.ir.functions import RULE
from pyshardy.ir.listing import ops_with
from pyshardy.ir.nodes import Op
from pyshardy.ir.sharing import SharedChanges, SharedOutcomes
from pyshardy.passes.base import Anchor, Pass, PassContext


class DropShardingRules(Pass):
    """Remove the sharding rules that no user gave."""

    name = "sdy-drop-sharding-rules"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        drop_sharding_rules(op)


def drop_sharding_rules(op: Op) -> None:
    """Remove the rules that are not custom from all ops inside `op`."""
    changes, outcomes = SharedChanges(), SharedOutcomes()
    for inner in ops_with(op, RULE):
        if not outcomes.apply(inner):
            before = inner.shared_attrs
            if not before[RULE].is_custom:
                changes.remove(inner, RULE)
            outcomes.note(before, inner)
