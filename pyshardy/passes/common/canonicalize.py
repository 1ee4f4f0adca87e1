"""`canonicalize`: the clean-up between the steps of export, where it has a label.

With any label, the pass removes dead ops and merges equal constants of a function at its start, even if their shardings
differ. It also applies the rewrites of the label, or all rewrites if there is no label. It visits ops from first to
last or, in the pipelines, from last to first. The order matters for chains of all-to-alls: the pair that is found first
is merged.

Source: docs/semantics/export.md#canonicalization
"""

from __future__ import annotations

from pyshardy.ir.nodes import Op
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.rewriting.greedy import GreedyDriver
from pyshardy.transforms.rewriting.patterns import OWN_PATTERNS, PATTERNS
from pyshardy.transforms.rewriting.unlabelled import UNLABELLED


class Canonicalize(Pass):
    """Simplify reshards or collectives, remove dead ops, and share equal constants.

    Attributes:
        enable_patterns: Which rewrites to apply: `sdy-reshard`, `sdy-collective`, or both, separated by a comma. By
            default both, and those without a label: unused operands of manual computations are removed, and equal
            reshards are merged. `pyshardy-reshard` is `sdy-reshard` without reshards to another mesh.
        top_down: Whether to start with the first op rather than the last.
    """

    enable_patterns: str = ""
    top_down: bool = True

    name = "canonicalize"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        labels = [label for label in self.enable_patterns.split(",") if label]
        known = {**PATTERNS, **OWN_PATTERNS}
        patterns = {name: found for label in labels or PATTERNS for name, found in known.get(label, {}).items()}
        if not labels:
            patterns.update(UNLABELLED)
        GreedyDriver(patterns, context.attrs, self.top_down).run(op)
