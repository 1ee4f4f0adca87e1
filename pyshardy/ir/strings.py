"""MLIR's strings, which are bytes: mostly UTF-8, but any bytes are legal.

The bindings fail on other bytes, and some of their functions end the process. Here such bytes become lone surrogates,
as in Python's file names; `core.text.quote` and `format_symbol` write them as MLIR does.
"""

from __future__ import annotations

import re
from typing import Any

from jaxlib.mlir import ir

from pyshardy.core.text import format_symbol, quote, unquote
from pyshardy.errors import InvalidModuleError

_SURROGATE = re.compile("[\udc80-\udcff]")
_KEY = re.compile(r'"((?:[^"\\]|\\.)*)"|[\w$.]+')


def string_value(attr: Any) -> str:
    """The string that a string attribute holds."""
    return str(ir.StringAttr(attr).value_bytes, "utf-8", "surrogateescape")


def make_string(text: str) -> Any:
    """The attribute of a string."""
    return ir.StringAttr.get(text) if is_utf8(text) else ir.Attribute.parse(quote(text))


def symbol_name(attr: Any) -> str:
    """The name that a reference to a symbol holds."""
    try:
        name: str = ir.FlatSymbolRefAttr(attr).value
    except RuntimeError:  # not UTF-8, and so in quotes
        return unquote(str(attr)[2:-1])
    return name


def make_symbol(name: str) -> Any:
    """The reference to a symbol."""
    return ir.FlatSymbolRefAttr.get(name) if is_utf8(name) else ir.Attribute.parse(format_symbol(name))


def check_names(dictionary: Any) -> None:
    """Raise an error unless the names in a dictionary are UTF-8; for other names the bindings end the process.

    Raises:
        InvalidModuleError: A name is not UTF-8.
    """
    text, position = str(dictionary), 1
    for index in range(len(dictionary)):
        name = _KEY.match(text, position)
        if name is None or not is_utf8(unquote(name[1] or "")):
            raise _no_attribute_name()
        position = name.end()
        if text.startswith(" = ", position):
            position += len(" = ") + len(str(dictionary[index].attr))
        position += len(", ")


def named_attributes(attributes: Any) -> list[tuple[str, Any]]:
    """The attributes of an op with their names.

    Raises:
        InvalidModuleError: A name is not UTF-8.
    """
    try:
        return list(attributes.items())
    except RuntimeError as error:
        raise _no_attribute_name() from error


def _no_attribute_name() -> InvalidModuleError:
    return InvalidModuleError("reading a module", got="an attribute whose name is not UTF-8", needed="names in UTF-8")


def result_name(info: Any, index: int, count: int) -> str:
    """The name that a user knows a result by: from what JAX writes, else by its number; `count` is that of results."""
    name = readable(string_value(info)) if isinstance(info, ir.StringAttr) else ""
    if name:
        return name if name.startswith("result") else f"result{name}"
    return "result" if count == 1 else f"result[{index}]"


def is_utf8(text: str) -> bool:
    """Whether a string is UTF-8."""
    return text.isascii() or _SURROGATE.search(text) is None


def utf8_bytes(text: str, name: str) -> bytes:
    """The text of a module as bytes.

    Raises:
        InvalidModuleError: It has characters that UTF-8 does not have, such as lone surrogates.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        got = f"the character {text[error.start]!r} at {error.start}"
        raise InvalidModuleError("reading a module", where=name, got=got, needed="text in UTF-8, or bytes") from error


def readable(text: str) -> str:
    r"""A string for people: bytes that are not UTF-8 as MLIR writes them.

    >>> print(readable("a\udcff"))
    a\FF
    """
    return _SURROGATE.sub(lambda match: f"\\{ord(match[0]) - 0xDC00:02X}", text)


def string_of(value: Any) -> str | None:
    """The content of an opaque string attribute; None for another attribute, or a string with a type."""
    if type(value) is not ir.StringAttr or type(value.type) is not ir.NoneType:
        return None
    return string_value(value)
