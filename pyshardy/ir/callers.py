"""Who calls a function, in the order in which the reference finds the users of a symbol."""

from __future__ import annotations

from pyshardy.ir.functions import CALL, functions
from pyshardy.ir.nodes import Op


class Callers:
    """The calls of every function of a module, found once.

    Args:
        root: The module; it must not change while this is used.
    """

    def __init__(self, root: Op) -> None:
        self._functions = {function.attrs["sym_name"]: function for function in functions(root)}
        self._calls: dict[str, list[Op]] = {}
        for op in root.region.block:
            for call in _calls_in(op):
                self._calls.setdefault(call.attrs["callee"], []).append(call)

    def of(self, function: Op) -> list[Op]:
        """The calls of a function (propagation spec, section 5.4)."""
        return self._calls.get(function.attrs["sym_name"], [])

    def callee(self, call: Op) -> Op:
        """The function that a call refers to."""
        return self._functions[call.attrs["callee"]]


def _calls_in(top: Op) -> list[Op]:
    """The calls of a block in order, then those in the regions of its ops, last region found first."""
    found: list[Op] = []
    regions = [*top.regions]
    while regions:
        region = regions.pop()
        for block in region.blocks:
            op = block.first
            while op is not None:
                if op.name == CALL:
                    found.append(op)
                if op.regions:
                    regions += op.regions
                op = op.next
    return found
