"""Finds weights that a function closed over: they are constants of its program, which take no shardings."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from pyshardy.core.text import format_bytes
from pyshardy.ir.diagnostics import Diagnostic, Severity
from pyshardy.ir.dtypes import element_bits
from pyshardy.ir.nodes import Op, Value, walk
from pyshardy.rules.properties import PROGRAM_CONSTANTS

LEAST_ELEMENTS = 1024
"""The fewest elements of a constant that may be a weight: windows, masks and tables of angles are smaller or ints."""
_USES = {
    "stablehlo.dot_general": (0, 1), "stablehlo.dot": (0, 1), "stablehlo.convolution": (1,), "stablehlo.gather": (0,),
}  # fmt: skip
"""What weights are for, and which operands they are."""
_THROUGH = frozenset(
    f"stablehlo.{name}" for name in ("convert", "transpose", "reshape", "slice", "dynamic_slice", "broadcast_in_dim")
)
_WITH_BODY = frozenset(("stablehlo.while", "sdy.manual_computation", "sdy.named_computation"))
"""Ops whose operands are the arguments of their regions."""


def closed_over(root: Op) -> Iterator[Diagnostic]:
    """The warning that a program has weights as constants; none if it has not.

    Args:
        root: The module, as it was loaded.
    """
    constants = [op for op in walk(root) if _may_be_weight(op)]
    calls = _Calls(root) if constants else None
    found = [(op, use) for op in constants if calls and (use := _use(op.result, calls)) is not None]
    if not found:
        return
    size = format_bytes(sum(_bytes(op.result) for op, _ in found))
    what = "1 array is a constant" if len(found) == 1 else f"{len(found)} arrays are constants"
    them = "it" if len(found) == 1 else "them"
    why = f"the function closes over {them}, so that no annotation names {them}"
    what += f" of the program, and used like weights ({size}): {why}, and the program of every device has {them} whole"
    advice = "a model of keras: model.stateless_call and its variables; of flax.nnx: nnx.jit"
    location = found[0][1].location
    yield Diagnostic(Severity.WARNING, f"{what}; pass {them} as arguments ({advice})", location)


def _may_be_weight(op: Op) -> bool:
    if op.name not in PROGRAM_CONSTANTS:
        return False
    kind = op.result.type
    if not kind.shape or not kind.is_static or prod(kind.shape) < LEAST_ELEMENTS or "f" not in kind.element:
        return False
    return not getattr(op.attrs["value"], "is_splat", False)  # resources do not say


def _bytes(value: Value) -> int:
    return prod(value.type.shape or ()) * element_bits(value.type.element) // 8


class _Calls:
    """The functions of a module and their calls."""

    def __init__(self, root: Op) -> None:
        ops = list(walk(root))
        self.functions = {op.attrs.get("sym_name"): op for op in ops if op.name == "func.func" and op.region.blocks}
        self.calls: dict[Any, list[Op]] = {}
        for op in ops:
            if op.name == "func.call":
                self.calls.setdefault(op.attrs.get("callee"), []).append(op)

    def behind(self, op: Op, operand: int) -> list[Value]:
        """The values that an operand of a call or return becomes."""
        if op.name == "func.call":
            function = self.functions.get(op.attrs.get("callee"))
            return [] if function is None else [function.region.blocks[0].args[operand]]
        parent = op.parent_op
        name = None if parent is None else parent.attrs.get("sym_name")
        return [call.results[operand] for call in self.calls.get(name, ())]


def _use(value: Value, calls: _Calls) -> Op | None:
    """The first op that uses a value as a weight, also behind moves, in loops and in functions that are called."""
    todo, seen = [value], {value}
    while todo:
        now = todo.pop()
        for op, operand in now.uses:
            if operand in _USES.get(op.name, ()):
                return op
            behind = [op.result] if op.name in _THROUGH and operand == 0 else []
            if op.name in _WITH_BODY:
                behind = [region.blocks[0].args[operand] for region in op.regions]
            elif op.name in ("func.call", "func.return"):
                behind = calls.behind(op, operand)
            todo += [one for one in behind if one not in seen]
            seen.update(behind)
    return None
