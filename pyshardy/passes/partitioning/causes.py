"""Naming what made a reshard necessary, in its location, which the collectives that it becomes take over.

The name is that of the op, as JAX scopes it, and what is resharded: `jit(f)/dot_general/reshard of operand 0 of
stablehlo.dot_general`. XLA shows it in profiles as the name of the collective.
"""

from __future__ import annotations

from pyshardy.ir.causes import with_cause
from pyshardy.ir.listing import ops_named
from pyshardy.ir.nodes import Op, Value

MADE = {
    "sdy.reshard": "reshard",
    "sdy.all_reduce": "sum",
    "sdy.sharded_to_unreduced": "reshard",
    "sdy.replicated_to_unreduced": "reshard",
}
"""The ops that bring a value to where another op needs it, and what is said of them."""


class CauseNamer:
    """Locates new reshards at the op that needs them; those that are in the function already stay as they are.

    Args:
        root: A module or function before any new reshard is in it.
    """

    def __init__(self, root: Op) -> None:
        self._named = set(ops_named(root, MADE))

    def name(self, op: Op) -> None:
        """Name the new reshards in front of an op, behind it, and at the ends of its regions."""
        for index, value in enumerate(op.operands):
            self._before(value, f"operand {index} of {op.name}", op)
        for result in () if op.name in MADE else op.results:
            what = f"result {result.index}" if len(op.results) > 1 else "result"
            self._after(result, f"{what} of {op.name}", op)
        for region in op.regions:
            for block in region.blocks:
                for index, value in enumerate(block.terminator.operands if block.last is not None else ()):
                    self._before(value, f"result {index} of the body of {op.name}", op)

    def _before(self, value: Value, what: str, op: Op) -> None:
        made = value.defining_op
        while made is not None and self._is_new(made):
            self._locate(made, what, op)
            made = made.operands[0].defining_op

    def _after(self, value: Value, what: str, op: Op) -> None:
        user = value.only_user()
        while user is not None and self._is_new(user):
            self._locate(user, what, op)
            user = user.result.only_user()

    def _is_new(self, op: Op) -> bool:
        return op.name in MADE and op not in self._named

    def _locate(self, made: Op, what: str, op: Op) -> None:
        self._named.add(made)
        made.location = with_cause(op.location, f"{MADE[made.name]} of {what}")
