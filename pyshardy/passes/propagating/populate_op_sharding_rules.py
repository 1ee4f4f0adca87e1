"""`sdy-populate-op-sharding-rules`: writes the rule of every op onto it.

Source: docs/semantics/rules.md#rules-of-ops
"""

from __future__ import annotations

from pyshardy.errors import InvalidRuleError
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import RULE
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.shared_attributes import SharedChanges
from pyshardy.passes.base import Anchor, Pass
from pyshardy.rules.table import rule_of
from pyshardy.transforms.context import PassContext


class PopulateOpShardingRules(Pass):
    """Give every op that has a sharding rule its rule as an attribute.

    Attributes:
        conservative_propagation: Whether to make rules for conservative propagation.
    """

    name = "sdy-populate-op-sharding-rules"
    anchor = Anchor.FUNCTION

    conservative_propagation: bool = False

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        changes = SharedChanges()
        for inner in walk(op):
            if RULE in inner.attrs:
                continue
            try:
                rule = rule_of(context.specs.spec(inner), self.conservative_propagation)
            except InvalidRuleError as error:
                raise PassError(inner, f"has no valid sharding rule: {error}") from error
            if rule is not None:
                changes.set(inner, RULE, rule)
