"""The contents of constants and of other dense attributes, as numbers."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.blocks import Value
from pyshardy.ir.dialects import stablehlo
from pyshardy.ir.op import Op
from pyshardy.ir.value_type import ValueType
from pyshardy.rules.properties import PROGRAM_CONSTANTS


def constant_of(value: Value) -> Any:
    """The attribute of a constant; None if the value is not a constant."""
    if not isinstance(value.owner, Op):
        return None
    op = value.owner
    return op.attrs["value"] if op.name in PROGRAM_CONSTANTS else None


def is_splat(attr: Any) -> bool:
    """Whether all elements of a constant are equal; not known of resources."""
    if not isinstance(attr, ir.DenseElementsAttr):  # the bindings have no class for complex constants
        try:
            attr = ir.DenseElementsAttr(attr)
        except ValueError:
            return False
    return bool(attr.is_splat)


def splat_number(attr: Any) -> Any:
    """The number that all elements of a dense attribute equal; None if they differ or are complex."""
    if not isinstance(attr, (ir.DenseFPElementsAttr, ir.DenseIntElementsAttr)) or not attr.is_splat:
        return None
    scalar: Any = attr.get_splat_value()
    return scalar.value


def splat_of(value: Value) -> Any:
    """The number that all elements of a constant equal; None if the value is not such a constant."""
    return splat_number(constant_of(value))


def constant_integer(value: Value) -> int | None:
    """The whole number that all elements of a constant equal; None if the value is not such a constant."""
    found = splat_of(value)
    return found if type(found) is int else None


def splat_attribute(scalar: Any, type: ValueType) -> Any:
    """A constant with only this element, an MLIR attribute."""
    return ir.DenseElementsAttr.get_splat(type.mlir, scalar).maybe_downcast()


def with_type(attr: Any, type: ValueType, attrs: AttrTable) -> Any:
    """A constant of another shape with the only element of a constant."""
    if isinstance(attr, (ir.DenseFPElementsAttr, ir.DenseIntElementsAttr)):
        return splat_attribute(attr.get_splat_value(), type)
    text = str(attr).rpartition(" : ")[0]  # complex numbers, for which the bindings give no elements
    return attrs.parse(f"{text} : {type}")


def comparison_direction(op: Op) -> str:
    """The direction of a `stablehlo.compare`: "LT", "EQ", ..."""
    found: str = stablehlo.ComparisonDirectionAttr(op.attrs["comparison_direction"]).value
    return found


def margins_of(attr: Any, rank: int) -> list[tuple[int, int]]:
    """The low and the high padding of every spatial dimension of an op with windows; none without the attribute."""
    if attr is None:
        return [(0, 0)] * rank
    flat = [splat_number(attr)] * (2 * rank) if attr.is_splat else list(attr)
    return list(zip(flat[::2], flat[1::2]))
