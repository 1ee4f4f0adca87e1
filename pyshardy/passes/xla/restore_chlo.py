"""`pyshardy-restore-chlo`: the ops that XLA's view has under XLA's names get those again that can be run anywhere."""

from __future__ import annotations

from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.passes.base import Pass
from pyshardy.passes.xla.legalize_chlo import RENAMED
from pyshardy.transforms.context import PassContext

_BACK = {name: chlo for chlo, name in RENAMED.items()}


class RestoreChlo(Pass):
    """Give the ops of MHLO that XLA keeps whole the names they have in CHLO."""

    name = "pyshardy-restore-chlo"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        for found in ops_named(op, tuple(_BACK)):
            found.rename(_BACK[found.name])
