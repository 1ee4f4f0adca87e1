"""The number of rounds of a loop, if it does not depend on data.

The counter of a loop is followed through the program as a base plus a known offset: through constants, additions,
conversions, calls, and loops that return it unchanged. If the condition of a loop compares two such numbers, and each
changes by the same amount every round, the number of rounds is known.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from math import prod
from typing import NamedTuple

from pyshardy.ir.constants import comparison_direction, constant_integer
from pyshardy.ir.functions import CALL, functions, is_declaration, return_op
from pyshardy.ir.nodes import Block, Op, Value, ValueType
from pyshardy.rules.properties import PROGRAM_CONSTANTS

LOOP = "stablehlo.while"
_SAME = frozenset(
    ("stablehlo.reshape", "stablehlo.optimization_barrier", "sdy.reshard", "sdy.sharding_constraint",
     "sdy.data_flow_edge", "stablehlo.broadcast_in_dim")
)  # fmt: skip
"""Ops that return their operands, one by one, if these are single numbers such as loop counters."""
_CONVERT, _ADD, _SUBTRACT, _COMPARE, _NOT = (
    f"stablehlo.{name}" for name in ("convert", "add", "subtract", "compare", "not")
)
_FOLDED: dict[str, Callable[[int, int], int]] = {
    "stablehlo.multiply": operator.mul,
    "stablehlo.maximum": max,
    "stablehlo.minimum": min,
}
"""Ops that are evaluated if their operands are constants."""
_FLIPPED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}
_NEGATED = {"LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT", "EQ": "NE", "NE": "EQ"}
_INTEGER = re.compile(r"(u?)i(\d+)")


class _BaseOffset(NamedTuple):
    """A number as a base value plus an offset. Without a base, it is a constant."""

    base: Value | None
    offset: int


class _Comparison(NamedTuple):
    """The comparison that decides whether a loop continues."""

    direction: str
    left: _BaseOffset
    right: _BaseOffset


class _Progression(NamedTuple):
    """How a number changes over the rounds: its start, its growth per round, and the limits of its type."""

    first: int
    step: int
    low: int
    high: int

    def stays_in_range(self, rounds: int) -> bool:
        """Whether it does not overflow within `rounds` rounds."""
        return self.low <= self.first + rounds * self.step <= self.high


class TripCounts:
    """Counts the rounds of the loops of a module. The module must not change meanwhile.

    Args:
        root: The module.
    """

    def __init__(self, root: Op) -> None:
        self._functions = {op.attrs["sym_name"]: op for op in functions(root) if not is_declaration(op)}
        self._base_offsets: dict[Value, _BaseOffset] = {}

    def trip_count(self, loop: Op, known: Mapping[Value, int] | None = None) -> int | None:
        """The number of rounds of a loop; None if unknown.

        Args:
            loop: A `stablehlo.while`.
            known: The known numbers among the arguments of the function around it.
        """
        comparison = self._comparison(loop.regions[0].block.terminator.operands[0])
        if comparison is None:
            return None
        left, right = (self._progression(number, loop, known or {}) for number in (comparison.left, comparison.right))
        if left is None or right is None:
            return None
        rounds = trip_count_until(comparison.direction, left.first - right.first, left.step - right.step)
        is_safe = rounds is not None and left.stays_in_range(rounds) and right.stays_in_range(rounds)
        return rounds if is_safe else None

    def constant(self, value: Value, known: Mapping[Value, int] | None = None) -> int | None:
        """The value of a single whole number that is always the same; None if unknown."""
        return self._known_number(self._base_offset(value), known or {}) if _limits(value.type) is not None else None

    def _progression(self, number: _BaseOffset, loop: Op, known: Mapping[Value, int]) -> _Progression | None:
        """How a number in the condition of a loop changes from round to round."""
        base, offset = number
        body = loop.regions[1].block
        if base is None or base.owner is not loop.regions[0].block:
            fixed = self._known_number(number, known)
            return None if fixed is None else _Progression(fixed, 0, fixed, fixed)
        following = self._base_offset(body.terminator.operands[base.index])
        start, limits = self.constant(loop.operands[base.index], known), _limits(base.type)
        if following.base is not body.args[base.index] or start is None or limits is None:
            return None
        low, high = limits
        return _Progression(start + offset, following.offset, low + offset, high + offset)

    def _known_number(self, number: _BaseOffset, known: Mapping[Value, int]) -> int | None:
        base, offset = number
        while base is not None:
            if base in known:
                return known[base] + offset
            loop = _loop_of(base)
            if loop is None or not self._is_loop_invariant(loop, base.index):
                return None
            base, more = self._base_offset(loop.operands[base.index])
            offset += more
        return offset

    def _is_loop_invariant(self, loop: Op, index: int) -> bool:
        """Whether every round of a loop returns one of its values unchanged."""
        body = loop.regions[1].block
        return self._base_offset(body.terminator.operands[index]) == _BaseOffset(body.args[index], 0)

    def _base_offset(self, value: Value) -> _BaseOffset:
        """A number as a base plus an offset. Arguments and all other unknown numbers are their own base."""
        visited: set[Value] = set()
        pending = [value]
        while pending:
            current = pending[-1]
            visited.add(current)
            missing = [
                other for other in self._inputs(current) if other not in self._base_offsets and other not in visited
            ]
            if current in self._base_offsets or not missing:
                self._base_offsets.setdefault(current, self._evaluated(current))
                pending.pop()
            else:
                pending += missing
        return self._base_offsets[value]

    def _inputs(self, value: Value) -> tuple[Value, ...]:
        """The numbers from which a number is computed: operands of its op, and results of a called function."""
        op = value.defining_op
        if op is None or _limits(value.type) is None:
            return ()
        if op.name in _SAME:
            return (op.operands[value.index],)
        if op.name == LOOP:
            return op.operands[value.index], op.regions[1].block.terminator.operands[value.index]
        if op.name == CALL:
            returned = self._returned_value(op, value.index)
            return () if returned is None else (returned, *op.operands)
        return op.operands if op.name in (_CONVERT, _ADD, _SUBTRACT, *_FOLDED) else ()

    def _evaluated(self, value: Value) -> _BaseOffset:
        """A number as a base plus an offset, from its inputs; the number is its own base if these do not suffice."""
        unknown = _BaseOffset(value, 0)
        op = value.defining_op
        if op is None or _limits(value.type) is None:
            return unknown
        if op.name in PROGRAM_CONSTANTS:
            number = constant_integer(value)
            return unknown if number is None else _BaseOffset(None, number)
        inputs = [self._base_offsets.get(other, _BaseOffset(other, 0)) for other in self._inputs(value)]
        if not inputs:
            return unknown
        first = inputs[0]
        if op.name in _SAME:
            return first if _limits(op.operands[value.index].type) is not None else unknown
        if op.name == _CONVERT:
            return first if _holds(value.type, op.operands[0].type, first) else unknown
        if op.name == LOOP:
            body = op.regions[1].block
            return first if inputs[1] == _BaseOffset(body.args[value.index], 0) else unknown
        if op.name == CALL:
            return self._at_call(op, first)
        return _computed(op.name, *inputs) or unknown

    def _returned_value(self, call: Op, index: int) -> Value | None:
        """The value that the called function returns as its result of this index."""
        function = self._functions.get(call.attrs["callee"])
        return None if function is None else return_op(function).operands[index]

    def _at_call(self, call: Op, number: _BaseOffset) -> _BaseOffset:
        """A number inside a function as a number at the call."""
        entry = self._functions[call.attrs["callee"]].region.blocks[0]
        if number.base is None or number.base.owner is not entry:
            return number
        base, offset = self._base_offset(call.operands[number.base.index])
        return _BaseOffset(base, offset + number.offset)

    def _comparison(self, value: Value) -> _Comparison | None:
        """The comparison whose outcome is this value."""
        op = value.defining_op
        calls: list[Op] = []
        is_negated = False
        while op is not None and op.name in (_NOT, CALL, *_SAME):
            if op.name == _NOT:
                is_negated = not is_negated
            if op.name != CALL:
                value = op.operands[value.index]
            else:
                returned = self._returned_value(op, value.index)
                if returned is None or op in calls:
                    return None
                calls.append(op)
                value = returned
            op = value.defining_op
        if op is None or op.name != _COMPARE or any(_limits(operand.type) is None for operand in op.operands):
            return None
        left, right = map(self._base_offset, op.operands)
        for call in reversed(calls):
            left, right = self._at_call(call, left), self._at_call(call, right)
        direction = comparison_direction(op)
        return _Comparison(_NEGATED[direction] if is_negated else direction, left, right)


def trip_count_until(direction: str, first: int, step: int) -> int | None:
    """How many times a number that grows by `step` stays on one side of zero; None if it stays for ever.

    >>> [trip_count_until(*case) for case in (("LT", -10, 3), ("GE", 10, -5), ("NE", -6, 4), ("LT", 0, -1))]
    [4, 3, None, 0]
    """
    if direction in ("GT", "GE"):
        return trip_count_until(_FLIPPED[direction], -first, -step)
    if direction == "EQ":
        return 0 if first else None if step == 0 else 1
    if direction == "NE":
        if first == 0:
            return 0
        return -first // step if step and first % step == 0 and -first // step > 0 else None
    last = -1 if direction == "LT" else 0
    if first > last:
        return 0
    return (last - first) // step + 1 if step > 0 else None


def _limits(type: ValueType) -> tuple[int, int] | None:
    """The smallest and the largest number of the type of one whole number; None for any other type."""
    match = _INTEGER.fullmatch("i64" if type.element == "index" else type.element)
    if match is None or match[0] == "i1" or not type.is_static or prod(type.shape or ()) != 1:
        return None
    bits = int(match[2])
    return (0, 2**bits - 1) if match[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _holds(target: ValueType, source: ValueType, number: _BaseOffset) -> bool:
    """Whether a conversion to a type keeps a number."""
    wide, narrow = _limits(target), _limits(source)
    if wide is None or narrow is None:
        return False
    low, high = (number.offset, number.offset) if number.base is None else narrow
    return wide[0] <= low and high <= wide[1]


def _computed(name: str, left: _BaseOffset, right: _BaseOffset) -> _BaseOffset | None:
    if name == _ADD and (left.base is None or right.base is None):
        return _BaseOffset(left.base or right.base, left.offset + right.offset)
    if name == _SUBTRACT and right.base is None:
        return _BaseOffset(left.base, left.offset - right.offset)
    if name in _FOLDED and left.base is None and right.base is None:
        return _BaseOffset(None, _FOLDED[name](left.offset, right.offset))
    return None


def _loop_of(value: Value) -> Op | None:
    """The loop whose condition or body has this value as an argument."""
    owner = value.owner
    if not isinstance(owner, Block) or owner.region is None:
        return None
    return owner.parent_op if owner.parent_op.name == LOOP else None
