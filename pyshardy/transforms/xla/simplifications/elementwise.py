"""Element-wise ops: fold constants, move a constant operand to the right, and remove ops without effect."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pyshardy.ir.blocks import Value
from pyshardy.ir.constants import comparison_direction, constant_of, splat_of
from pyshardy.ir.op import Op
from pyshardy.transforms.xla.simplifications.constants import array_of, compute, dtype_of
from pyshardy.transforms.xla.simplifier import Simplified, Simplifier

_NOT = "stablehlo.not"


def fold(op: Op, to: Simplifier) -> Simplified:
    """Compute an op whose operands are all constants."""
    arrays = []
    for value in op.operands:
        if constant_of(value) is None:
            return None
        array = array_of(value)
        if array is None:
            return None
        arrays.append(array)
    computed = compute(op, arrays)
    return None if computed is None else to.constant(op, computed, op.result.type)


class _Algebra(NamedTuple):
    """Algebraic properties of an op with two operands.

    Attributes:
        commutes: Whether the op is commutative.
        neutral: The right identity; -1 means all bits set.
        absorbing: The absorbing right operand, for integers.
        cancels: Whether the result is zero for equal integer operands.
    """

    commutes: bool = True
    neutral: int | None = None
    absorbing: int | None = None
    cancels: bool = False


_ALGEBRA = {
    "stablehlo.add": _Algebra(neutral=0),
    "stablehlo.and": _Algebra(neutral=-1, absorbing=0),
    "stablehlo.divide": _Algebra(commutes=False),
    "stablehlo.maximum": _Algebra(),
    "stablehlo.minimum": _Algebra(),
    "stablehlo.multiply": _Algebra(neutral=1, absorbing=0),
    "stablehlo.or": _Algebra(neutral=0, absorbing=-1),
    "stablehlo.remainder": _Algebra(commutes=False),
    "stablehlo.subtract": _Algebra(commutes=False, neutral=0, cancels=True),
    "stablehlo.xor": _Algebra(neutral=0, cancels=True),
}


def binary(op: Op, to: Simplifier) -> Simplified:
    """Simplify an op with two operands if one is a constant or both are the same value."""
    first, second = op.operands
    is_first, is_second = constant_of(first) is not None, constant_of(second) is not None
    if not (is_first or is_second or first is second):
        return None
    algebra = _ALGEBRA[op.name]
    element = op.result.type.element
    if first is second and algebra.cancels and _is_integer(element) and op.result.type.is_static:
        return to.constant(op, np.zeros((), dtype_of(element)), op.result.type)
    if is_first and not is_second and algebra.commutes:
        op.set_operand(0, second)
        op.set_operand(1, first)
        return True
    if is_second:
        value = to.splats[second] if second in to.splats else to.splats.setdefault(second, splat_of(second))
        if value is not None and _is_number(value, algebra.neutral, element):
            return first
        if value is not None and _is_integer(element) and _is_number(value, algebra.absorbing, element):
            return second
        return fold(op, to) if is_first else None
    return None


def _is_integer(element: str) -> bool:
    return element.startswith(("i", "ui"))


def _is_number(value: Any, number: int | None, element: str) -> bool:
    """Whether a value is a constant with this number, or with all bits set if it is -1."""
    if number is None:
        return False
    if number >= 0:
        return bool(value == number)
    return _is_integer(element) and (int(value) + 1) % (1 << int(element.lstrip("ui"))) == 0


def compare(op: Op, to: Simplifier) -> Simplified:
    """`p != false` and `p == true` are `p`."""
    if op.operands[1].type.element == "i1":
        value = splat_of(op.operands[1])
        if value is not None and comparison_direction(op) == ("EQ" if value else "NE"):
            return op.operands[0]
    return fold(op, to)


def select(op: Op, to: Simplifier) -> Simplified:
    """A select between equal values, with a constant predicate, or with a negated one."""
    predicate, on_true, on_false = op.operands
    if on_true is on_false:
        return on_true
    value = splat_of(predicate)
    if value is not None:
        return on_true if value else on_false
    negated = _defined_by(predicate, _NOT)
    if negated is not None:
        return _swapped(op, negated.operands[0])
    spread = _defined_by(predicate, "stablehlo.broadcast_in_dim")
    negated = None if spread is None else _defined_by(spread.operands[0], _NOT)
    if spread is None or negated is None:
        return fold(op, to)
    dims = spread.attrs["broadcast_dimensions"]
    return _swapped(op, to.make(op, spread.name, negated.operands, predicate.type, broadcast_dimensions=dims))


def _swapped(op: Op, predicate: Value) -> bool:
    _, on_true, on_false = op.operands
    for index, value in enumerate((predicate, on_false, on_true)):
        op.set_operand(index, value)
    return True


def _defined_by(value: Value, name: str) -> Op | None:
    owner = value.owner
    return owner if isinstance(owner, Op) and owner.name == name else None


def convert(op: Op, to: Simplifier) -> Simplified:
    """A conversion to the same type."""
    return op.operands[0] if op.operands[0].type is op.result.type else fold(op, to)


def real(op: Op, to: Simplifier) -> Simplified:
    """The real part of a complex number made of two parts."""
    made = _defined_by(op.operands[0], "stablehlo.complex")
    return None if made is None else made.operands[0]


def imag(op: Op, to: Simplifier) -> Simplified:
    """The imaginary part of a complex number made of two parts."""
    made = _defined_by(op.operands[0], "stablehlo.complex")
    return None if made is None else made.operands[1]


def complex_number(op: Op, to: Simplifier) -> Simplified:
    """A complex number made of the two parts of one complex number."""
    first, second = _defined_by(op.operands[0], "stablehlo.real"), _defined_by(op.operands[1], "stablehlo.imag")
    if first is None or second is None or first.operands[0] is not second.operands[0]:
        return None
    return first.operands[0]
