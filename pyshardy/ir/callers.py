"""Who calls a function, in the order in which the reference finds the users of a symbol."""

from __future__ import annotations

from collections.abc import Iterator

from pyshardy.ir.functions import CALL, calls, functions
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
            for call in _calls_in(op) if calls(op) else ():
                self._calls.setdefault(call.attrs["callee"], []).append(call)

    def of(self, function: Op) -> list[Op]:
        """The calls of a function (propagation spec, section 5.4)."""
        return self._calls.get(function.attrs["sym_name"], [])

    def callee(self, call: Op) -> Op:
        """The function that a call refers to."""
        return self._functions[call.attrs["callee"]]


def _calls_in(top: Op) -> Iterator[Op]:
    """The calls of a block in order, then those in the regions of its ops, last region found first."""
    regions = list(top.regions)
    while regions:
        for block in regions.pop().blocks:
            for op in block:
                if op.name == CALL:
                    yield op
                regions.extend(op.regions)
