"""MLIR attributes as plain Python values, for the functions that users register."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final

from jaxlib.mlir import ir

from pyshardy.ir.strings import check_names, string_value, symbol_name


def plain_attribute(attr: Any) -> Hashable:
    """An attribute as a number, string, boolean or tuple; a dictionary as a tuple of pairs; others as MLIR text.

    >>> with ir.Context():
    ...     plain_attribute(ir.Attribute.parse('{alpha = 2.0, axes = [0, "x"], fast, window = array<i64: 1, 2>}'))
    (('alpha', 2.0), ('axes', (0, 'x')), ('fast', True), ('window', (1, 2)))
    """
    convert = _CONVERTERS.get(type(attr))
    return str(attr) if convert is None else convert(attr)


def _value(attr: Any) -> Hashable:
    found: Hashable = attr.value
    return found


def _pairs(attr: Any) -> tuple[tuple[str, Hashable], ...]:
    check_names(attr)
    return tuple((named.name, plain_attribute(named.attr)) for named in attr)


_CONVERTERS: Final[dict[Any, Callable[[Any], Hashable]]] = {
    ir.BoolAttr: _value,
    ir.IntegerAttr: _value,
    ir.FloatAttr: _value,
    ir.StringAttr: string_value,
    ir.FlatSymbolRefAttr: symbol_name,
    ir.UnitAttr: lambda attr: True,
    ir.ArrayAttr: lambda attr: tuple(plain_attribute(item) for item in attr),
    ir.DictAttr: _pairs,
    ir.DenseBoolArrayAttr: tuple,
    ir.DenseI32ArrayAttr: tuple,
    ir.DenseI64ArrayAttr: tuple,
    ir.DenseF32ArrayAttr: tuple,
    ir.DenseF64ArrayAttr: tuple,
}
