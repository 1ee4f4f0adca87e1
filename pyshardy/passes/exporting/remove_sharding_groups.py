"""`sdy-remove-sharding-groups`: groups go.

Source: docs/semantics/export.md#sdy-remove-sharding-groups
"""

from __future__ import annotations

from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext


class RemoveShardingGroups(Pass):
    """Erase every `sdy.sharding_group`."""

    name = "sdy-remove-sharding-groups"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        for group in ops_named(op, ("sdy.sharding_group",)):
            group.erase()
