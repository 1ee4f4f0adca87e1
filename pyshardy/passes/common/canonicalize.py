"""`canonicalize` with a label: the clean-up between the steps of export (export spec, section 1.4).

Whatever the label, dead ops go, and equal constants of a function become one at its start, even if their
shardings differ. On top of that come the rewrites of the label. The ops are tried from the first to the last, or, as
the pipelines have it, from the last to the first; this matters for chains of all-to-alls, where a pair found first
is merged.
"""

from __future__ import annotations

from pyshardy.errors import UsageError
from pyshardy.ir.nodes import Op
from pyshardy.passes.base import Pass, PassContext
from pyshardy.passes.common.greedy import GreedyDriver
from pyshardy.passes.common.patterns import PATTERNS


class Canonicalize(Pass):
    """Simplify reshards or collectives, remove dead ops, and share equal constants.

    Attributes:
        enable_patterns: Which rewrites to apply, `sdy-reshard` or `sdy-collective`, or both with a comma between.
        top_down: Whether the first op is tried first instead of the last.
    """

    enable_patterns: str = ""
    top_down: bool = True

    name = "canonicalize"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        labels = [label for label in self.enable_patterns.split(",") if label]
        if not labels:
            raise UsageError(
                "running canonicalize",
                got="no label in enable-patterns",
                needed=f"one of {', '.join(PATTERNS)}",
                hint="canonicalize{enable-patterns=sdy-collective}",
            )
        patterns = {name: found for label in labels for name, found in PATTERNS.get(label, {}).items()}
        GreedyDriver(patterns, context.attrs, self.top_down).run(op)
