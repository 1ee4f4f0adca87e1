"""Sizes of element types and tensors, in bits and bytes."""

from __future__ import annotations

import re

from pyshardy.errors import InvalidModuleError

_NAMED_BITS = {"i1": 8, "index": 64}
_DIGITS = re.compile(r"(?:bf|tf|f|ui|si|i|b)(\d+)")


def element_bits(element: str) -> int:
    """Bits that one element takes in memory; a predicate takes a whole byte.

    Args:
        element: MLIR's text of the element type.

    >>> element_bits("bf16"), element_bits("i1"), element_bits("complex<f32>"), element_bits("f8E4M3FN")
    (16, 8, 64, 8)
    """
    if element in _NAMED_BITS:
        return _NAMED_BITS[element]
    if element.startswith("complex<"):
        return 2 * element_bits(element[len("complex<") : -1])
    if element.startswith("!quant.uniform<"):
        return element_bits(element[len("!quant.uniform<") :].partition(":")[0])
    found = _DIGITS.match(element)
    if found is None:
        raise InvalidModuleError("looking up the size of an element type", got=element, needed="a type of known size")
    return int(found.group(1))


def tensor_bytes(shape: tuple[int, ...], element: str) -> int:
    """Bytes of a tensor, rounded up to whole bytes.

    >>> tensor_bytes((2, 3), "f32"), tensor_bytes((3,), "i4")
    (24, 2)
    """
    bits = element_bits(element)
    for size in shape:
        bits *= size
    return -(-bits // 8)


def known_bytes(shape: tuple[int, ...] | None, element: str) -> int:
    """Bytes of a tensor; 0 if it has no shape, a dynamic one, or elements of unknown size.

    >>> known_bytes((2, 3), "f32"), known_bytes(None, "!stablehlo.token"), known_bytes((2, -1), "f32")
    (24, 0, 0)
    """
    if shape is None or -1 in shape:
        return 0
    try:
        return tensor_bytes(shape, element)
    except InvalidModuleError:
        return 0


def element_of_hlo(name: str) -> str:
    """The element type as MLIR writes it.

    >>> [element_of_hlo(name) for name in ("pred", "s32", "u8", "bf16", "c64")]
    ['i1', 'i32', 'ui8', 'bf16', 'complex<f32>']
    """
    if name == "pred":
        return "i1"
    if name[0] == "c" and name[1:].isdigit():
        return f"complex<f{int(name[1:]) // 2}>"
    signs = {"s": "i", "u": "ui"}
    return signs[name[0]] + name[1:] if name[0] in signs else name
