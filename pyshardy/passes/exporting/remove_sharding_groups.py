"""`sdy-remove-sharding-groups` (export spec, section 4.4)."""

from __future__ import annotations

from pyshardy.ir.nodes import Op, walk
from pyshardy.passes.base import Pass, PassContext


class RemoveShardingGroups(Pass):
    """Erase every `sdy.sharding_group`."""

    name = "sdy-remove-sharding-groups"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        for inner in walk(op):
            if inner.name == "sdy.sharding_group":
                inner.erase()
