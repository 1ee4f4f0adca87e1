"""How MLIR writes strings and symbols."""

from __future__ import annotations

import re

_IDENTIFIER = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)


def quote(text: str) -> str:
    r"""A string in quotes as MLIR prints it.

    >>> print(quote('a"b'))
    "a\22b"
    """
    return '"' + "".join(_escape(character) for character in text) + '"'


def _escape(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if " " <= character <= "~" and character != '"':
        return character
    return "".join(f"\\{byte:02X}" for byte in character.encode())


def format_symbol(name: str) -> str:
    """A symbol as MLIR prints it: `@name`, quoted if it is no plain identifier.

    >>> print(format_symbol("mesh_0"), format_symbol("<lambda>"))
    @mesh_0 @"<lambda>"
    """
    return "@" + (name if _IDENTIFIER.fullmatch(name) else quote(name))
