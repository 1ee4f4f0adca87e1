"""`pyshardy-restore-chlo`: turns ops of MHLO back into ops of CHLO, which every consumer can run."""

from __future__ import annotations

from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.passes.base import Pass
from pyshardy.passes.xla.legalize_chlo import RENAMED
from pyshardy.transforms.context import PassContext

_BACK = {name: chlo for chlo, name in RENAMED.items()}


class RestoreChlo(Pass):
    """Rename the ops of MHLO that stand for a CHLO op back to that op."""

    name = "pyshardy-restore-chlo"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        for found in ops_named(op, tuple(_BACK)):
            found.rename(_BACK[found.name])
