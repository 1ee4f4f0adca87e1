"""`pyshardy-add-hlo-rules`: gives XLA's sharding rules to ops that only HLO has."""

from __future__ import annotations

from pyshardy.ir.functions import RULE
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.passes.base import Pass
from pyshardy.rules.ops import OPS
from pyshardy.rules.traits import function_of_trait
from pyshardy.transforms.context import PassContext

_RULES = {name: traits.xla_rule for name, traits in OPS.items() if traits.xla_rule}


class AddHloRules(Pass):
    """Give XLA's sharding rules to elementwise `mhlo` ops that StableHLO lacks, such as `mhlo.copy`."""

    name = "pyshardy-add-hlo-rules"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        for found in ops_named(op, _RULES):
            if RULE not in found.attrs:
                rule = function_of_trait("xla_rule", _RULES[found.name])(context.specs.spec(found), False)
                if rule is not None:
                    found.set_attr(RULE, rule)
