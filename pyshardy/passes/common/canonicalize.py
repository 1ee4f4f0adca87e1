"""`canonicalize`: the clean-up between the steps of export, there with a label.

Whatever the label, dead ops go, and equal constants of a function become one at its start, even if their
shardings differ. On top of that come the rewrites of the label, all rewrites if there is none. The ops are tried from
the first to the last, or, as the pipelines have it, from the last to the first; this matters for chains of all-to-alls,
where a pair found first is merged.

Source: docs/semantics/export.md#canonicalization
"""

from __future__ import annotations

from pyshardy.ir.nodes import Op
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.rewriting.greedy import GreedyDriver
from pyshardy.transforms.rewriting.patterns import PATTERNS
from pyshardy.transforms.rewriting.unlabelled import UNLABELLED


class Canonicalize(Pass):
    """Simplify reshards or collectives, remove dead ops, and share equal constants.

    Attributes:
        enable_patterns: Which rewrites to apply, `sdy-reshard` or `sdy-collective`, or both with a comma between. By
            default both, and those without a label: manual computations take what they use, a reshard that has been
            done is used again.
        top_down: Whether the first op is tried first instead of the last.
    """

    enable_patterns: str = ""
    top_down: bool = True

    name = "canonicalize"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        labels = [label for label in self.enable_patterns.split(",") if label]
        patterns = {name: found for label in labels or PATTERNS for name, found in PATTERNS.get(label, {}).items()}
        if not labels:
            patterns.update(UNLABELLED)
        GreedyDriver(patterns, context.attrs, self.top_down).run(op)
