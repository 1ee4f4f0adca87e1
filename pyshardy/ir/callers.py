"""The callers of a function, in the order in which the reference finds the users of a symbol."""

from __future__ import annotations

from collections.abc import Sequence

from pyshardy.ir.functions import CALL, functions
from pyshardy.ir.op import Op
from pyshardy.ir.symbols import callee_in


class Callers:
    """The calls of every function of a module, found once.

    Args:
        root: The module; it must not change while this object is in use.
        calls: All calls in it, each op before the ops inside it, if they are known.
    """

    def __init__(self, root: Op, calls: Sequence[Op] | None = None) -> None:
        self._functions = {function.attrs["sym_name"]: function for function in functions(root)}
        self._calls: dict[str, list[Op]] = {}
        if calls is None or not all(_is_at_the_top(call, root) for call in calls):
            calls = [call for op in root.region.block for call in _calls_in(op)]
        for call in calls:
            self._calls.setdefault(call.attrs["callee"], []).append(call)

    def of(self, function: Op) -> list[Op]:
        """The calls of a function.

        Source: docs/semantics/propagation.md#calls
        """
        return self._calls.get(function.attrs["sym_name"], [])

    def callee(self, call: Op) -> Op:
        """The function that a call refers to."""
        return callee_in(self._functions, call)


def _is_at_the_top(call: Op, root: Op) -> bool:
    """Whether it stands directly in a function of the module, not inside another op."""
    function = call.parent_op
    return function is not None and function.parent_op is root


def _calls_in(top: Op) -> list[Op]:
    """The calls of a block in order, then those in the regions of its ops, last region first."""
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
