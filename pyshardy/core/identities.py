"""Identity values of combiners, as MLIR writes them in a constant."""

from __future__ import annotations

import re

_LARGEST: dict[str, tuple[int, int]] = {
    "f64": (16, 0x7FF0000000000000),
    "f32": (8, 0x7F800000),
    "f16": (4, 0x7C00),
    "bf16": (4, 0x7F80),
    "f8E5M2": (2, 0x7C),
    "f8E4M3": (2, 0x78),
    "f8E3M4": (2, 0x70),
    "f8E4M3FN": (2, 0x7E),
    "f8E5M2FNUZ": (2, 0x7F),
    "f8E4M3FNUZ": (2, 0x7F),
    "f8E4M3B11FNUZ": (2, 0x7F),
}
"""Per element type: the hexadecimal digits of one, and the bits of the largest value, infinity if it exists."""
_INTEGER = re.compile(r"(u|s)?i(\d+)")


def zero_text(element: str) -> str:
    """Zero of an element type.

    >>> zero_text("f32"), zero_text("ui8"), zero_text("index"), zero_text("i1"), zero_text("complex<f32>")
    ('0.0', '0', '0', 'false', '(0.0,0.0)')
    """
    if element == "i1":
        return "false"
    if element.startswith("complex"):
        inner = zero_text(element[len("complex<") : -1])
        return f"({inner},{inner})"
    return "0" if _is_integer(element) else "0.0"


def one_text(element: str) -> str:
    """One of an element type.

    >>> one_text("f32"), one_text("ui8"), one_text("i1"), one_text("complex<f32>")
    ('1.0', '1', 'true', '(1.0,0.0)')
    """
    if element == "i1":
        return "true"
    if element.startswith("complex"):
        inner = element[len("complex<") : -1]
        return f"({one_text(inner)},{zero_text(inner)})"
    return "1" if _is_integer(element) else "1.0"


def extreme_text(element: str, largest: bool) -> str | None:
    """The largest or smallest value of an element type, infinity if it has one; None if the type has no order.

    >>> extreme_text("ui8", largest=True), extreme_text("i8", largest=False), extreme_text("i1", largest=True)
    ('255', '-128', 'true')
    >>> extreme_text("f32", largest=False), extreme_text("complex<f32>", largest=True)
    ('0xFF800000', None)
    """
    if element == "i1":
        return str(largest).lower()
    found = _INTEGER.fullmatch(element)
    if found is not None:
        is_signed, bits = found[1] != "u", int(found[2]) - (found[1] != "u")
        return str(2**bits - 1 if largest else -(2**bits) if is_signed else 0)
    if element not in _LARGEST:
        return None
    digits, value = _LARGEST[element]
    return f"0x{value if largest else value | 1 << 4 * digits - 1:0{digits}X}"


def identity_text(combiner: str, element: str) -> str | None:
    """The value that a combiner of StableHLO ignores; None if there is none.

    >>> [identity_text(name, "i32") for name in ("add", "multiply", "maximum", "and", "subtract")]
    ['0', '1', '-2147483648', '-1', None]
    """
    if combiner in ("add", "or", "xor"):
        return zero_text(element)
    if combiner == "multiply":
        return one_text(element)
    if combiner == "and":
        return extreme_text(element, largest=True) if element.startswith("u") or element == "i1" else "-1"
    if combiner in ("maximum", "minimum"):
        return extreme_text(element, largest=combiner == "minimum")
    return None


def _is_integer(element: str) -> bool:
    return element == "index" or _INTEGER.fullmatch(element) is not None
