"""`pyshardy-simplify`: folds and simplifies as XLA does before it makes HLO."""

from __future__ import annotations

from pyshardy.ir.functions import functions, is_declaration
from pyshardy.ir.nodes import Op
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.xla.simplifier import Simplifier


class Simplify(Pass):
    """Fold constants, remove dead ops and ops without effect, and merge ops where possible, as XLA does."""

    name = "pyshardy-simplify"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        from pyshardy.transforms.xla.simplifications.empty import replace_empty
        from pyshardy.transforms.xla.simplifications.table import SIMPLIFICATIONS  # imports numpy

        for function in functions(op):
            if not is_declaration(function):
                simplifier = Simplifier(function, context.attrs, SIMPLIFICATIONS)
                replace_empty(simplifier)
                simplifier.run()
