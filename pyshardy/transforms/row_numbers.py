"""Whether a value holds, along one of its dimensions, the number of each position."""

from __future__ import annotations

from math import prod

from pyshardy.ir.constants import comparison_direction, constant_integer
from pyshardy.ir.nodes import Op, Value

_COMPARE, _SELECT, _IOTA = "stablehlo.compare", "stablehlo.select", "stablehlo.iota"


def is_row_number(value: Value, dim: int) -> bool:
    """Whether every element of a value is its own position along a dimension.

    The value is an iota. It may be reshaped, broadcast, or converted to another integer. It may be clamped to all
    positions, or wrapped as JAX wraps negative indices.

    Args:
        value: A value of static shape.
        dim: The dimension.
    """
    op, shape = value.defining_op, value.type.shape or ()
    if op is None or not value.type.is_static or not _holds(value.type.element, shape[dim]):
        return False
    if op.name == _IOTA:
        found: int = op.attrs["iota_dimension"].value
        return found == dim
    if op.name == "stablehlo.convert":
        return is_row_number(op.operands[0], dim)
    if op.name == "stablehlo.reshape":
        source = _source_of_reshape(op.operands[0].type.shape or (), shape, dim)
        return source is not None and is_row_number(op.operands[0], source)
    if op.name == "stablehlo.broadcast_in_dim":
        dims = list(op.attrs["broadcast_dimensions"])
        source = dims.index(dim) if dim in dims else None
        return (
            source is not None
            and (op.operands[0].type.shape or ())[source] == shape[dim]
            and is_row_number(op.operands[0], source)
        )
    if op.name == "stablehlo.clamp":
        least, given, most = op.operands
        ends = _number(least), _number(most)
        inside = ends[0] is not None and ends[1] is not None and ends[0] <= 0 and ends[1] >= shape[dim] - 1
        return inside and is_row_number(given, dim)
    return op.name == _SELECT and _is_wrapped(op, dim)


def _holds(element: str, count: int) -> bool:
    """Whether an element type is an integer that holds the numbers below a count."""
    bits = element.removeprefix("u").removeprefix("i")
    return bits.isdecimal() and count <= 1 << (int(bits) - (0 if element.startswith("u") else 1))


def _source_of_reshape(before: tuple[int, ...], after: tuple[int, ...], dim: int) -> int | None:
    """The dimension that a reshape keeps as `dim`; None if it splits or merges it."""
    outer = prod(after[:dim])
    for source, size in enumerate(before):
        if size == after[dim] and prod(before[:source]) == outer and (size > 1 or before[:source] == after[:dim]):
            return source
    return None


def _is_wrapped(op: Op, dim: int) -> bool:
    """Whether a select handles negative positions, of which there are none, and so returns the positions."""
    choice, _, otherwise = op.operands
    compared = choice.defining_op
    while compared is not None and compared.name in ("stablehlo.broadcast_in_dim", "stablehlo.reshape"):
        compared = compared.operands[0].defining_op
    if compared is None or compared.name != _COMPARE or comparison_direction(compared) != "LT":
        return False
    given, bound = compared.operands
    return (
        _number(bound) == 0
        and any(is_row_number(given, place) for place in range(given.type.rank))
        and is_row_number(otherwise, dim)
    )


def _number(value: Value) -> int | None:
    """The integer that all elements of a value equal; None if there is no such known integer."""
    op = value.defining_op
    while op is not None and op.name in ("stablehlo.broadcast_in_dim", "stablehlo.reshape"):
        value, op = op.operands[0], op.operands[0].defining_op
    return constant_integer(value)
