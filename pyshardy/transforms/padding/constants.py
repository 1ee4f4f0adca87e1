"""Padding of constants, and the contents of constants.

Source: docs/semantics/partitioner.md#what-padding-holds
Source: docs/semantics/partitioner.md#padding-of-ops
"""

from __future__ import annotations

import re
from math import prod
from typing import Any

import numpy as np

from pyshardy.ir.constants import is_splat, splat_of, with_type
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op, Value
from pyshardy.transforms.builder import zero_text
from pyshardy.transforms.padding.padder import Padder, Padding, StaticShape

_ELEMENT = re.compile(r"\([^)]*\)|[^\[\],\s]+")
_MOST_ADDED = 2**22
"""By so many elements may a constant grow: every one is written."""
_KINDS: dict[Any, Padding] = {0.0: Padding.ZERO, 1.0: Padding.ONE}


def pad_constant(op: Op, padder: Padder) -> None:
    """Append zeros to the values, unless all values are equal."""
    result = op.result
    shape = padder.original_shape(result)
    padder.pad_result(result)
    padded = result.type.shape or ()
    if padded == shape:
        return
    attr, attrs = op.attrs["value"], padder.context.attrs
    if is_splat(attr):
        op.set_attr("value", with_type(attr, result.type, attrs))
        return
    if 0 in padded:
        op.set_attr("value", attrs.parse(f"dense<> : {result.type}"))
        return
    values = _values(op)
    _check_growth(op, prod(padded) - prod(shape))
    values = _padded(values, shape, padded, zero_text(result.type.element))
    if op.name == "sdy.constant":
        padder.paddings[result] = Padding.ZERO
    op.set_attr("value", attrs.parse(f"dense<{values}> : {result.type}"))


def filler_of(value: Value) -> Padding | None:
    """Zero or one, if the value is a constant with only that element."""
    return _KINDS.get(splat_of(value))


def _values(op: Op) -> str:
    """The elements of a constant, as MLIR writes them inside `dense<...>`."""
    text = str(op.attrs["value"])
    if not text.startswith("dense<"):
        raise PassError(op, f"is sharded and not divisible, which needs a dense constant, not {text[:40]}")
    return text[len("dense<") : text.rindex("> : ")]


def _check_growth(op: Op, added: int) -> None:
    if added > _MOST_ADDED:
        raise PassError(op, f"would be padded by {added} elements, of which at most {_MOST_ADDED} can be written")


def _padded(values: str, shape: StaticShape, padded: StaticShape, zero: str) -> str:
    """The text of the padded elements.

    >>> _padded("[[1], [2]]", (2, 1), (3, 2), "0")
    '[[1, 0], [2, 0], [0, 0]]'
    >>> _padded('"0x01000200"', (2,), (4,), "0")
    '"0x0100020000000000"'
    """
    widths = [(0, new - old) for old, new in zip(shape, padded)]
    if values.startswith('"0x'):
        return _padded_bytes(bytes.fromhex(values[3:-1]), shape, widths)
    array = np.array(_ELEMENT.findall(values), dtype=object).reshape(shape)
    more = np.pad(array, widths, constant_values="")
    return str(np.where(more == "", zero, more).tolist()).replace("'", "")


def _padded_bytes(data: bytes, shape: StaticShape, widths: list[tuple[int, int]]) -> str:
    count = prod(shape)
    array = np.frombuffer(data, np.uint8).reshape(*shape, len(data) // count)
    return f'"0x{np.pad(array, [*widths, (0, 0)]).tobytes().hex().upper()}"'
