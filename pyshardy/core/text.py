"""Strings, symbols, types and byte counts as text."""

from __future__ import annotations

import re

STANDARD_INPUT = "-"
"""The name of standard input, and of standard output, in the place of a file."""
_IDENTIFIER = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)
_PLAIN = re.compile(r"[ !#-\[\]-~]*")
_ESCAPE = re.compile(rb'\\(["\\nt]|[0-9A-Fa-f]{2})')
_ESCAPED = {b'"': b'"', b"\\": b"\\", b"n": b"\n", b"t": b"\t"}


def quote(text: str) -> str:
    r"""A string in quotes as MLIR prints it; `unquote` is the inverse.

    >>> print(quote('a"b'))
    "a\22b"
    """
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    return '"' + "".join([_escape(character) for character in text]) + '"'


def unquote(body: str) -> str:
    r"""The string whose text between the quotes is `body`; its escapes stand for the bytes of UTF-8.

    Bytes that are not UTF-8 become lone surrogates, as in Python's file names, and are printed unchanged.

    >>> unquote(r"\C3\A9t\C3\A9")
    'été'
    """
    if "\\" not in body:
        return body
    return _ESCAPE.sub(_unescape, body.encode(errors="surrogateescape")).decode(errors="surrogateescape")


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match.group(1)
    return _ESCAPED[code] if code in _ESCAPED else bytes([int(code, 16)])


def _escape(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if " " <= character <= "~" and character != '"':
        return character
    return "".join(f"\\{byte:02X}" for byte in character.encode(errors="surrogateescape"))


def format_symbol(name: str) -> str:
    """A symbol as MLIR prints it: `@name`, quoted if it is not a plain identifier.

    >>> print(format_symbol("mesh_0"), format_symbol("<lambda>"))
    @mesh_0 @"<lambda>"
    """
    return "@" + (name if _IDENTIFIER.fullmatch(name) else quote(name))


def named_type(value: object) -> str:
    """The type of a value with its article, for messages.

    >>> named_type(5), named_type([]), named_type(None)
    ('an int', 'a list', 'None')
    """
    name = type(value).__name__
    if value is None:
        return "None"
    return f"{'an' if name[:1].lower() in 'aeio' else 'a'} {name}"


_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def format_bytes(count: int) -> str:
    """A byte count in the unit that keeps the number short.

    >>> format_bytes(512), format_bytes(1536), format_bytes(3 * 2**30), format_bytes(2**60)
    ('512 B', '1.5 KiB', '3.0 GiB', '1.0 EiB')
    """
    if count < 1024:
        return f"{count} B"
    powers = range(1, len(_UNITS))
    power = next((power for power in powers if round(count / 1024**power, 1) < 1024), len(_UNITS))
    return f"{count / 1024**power:.1f} {_UNITS[power - 1]}"


_SIZE = re.compile(r"(\d{1,30}(?:\.\d{1,30})?)\s*([a-zA-Z]*)")
_FACTORS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}


def parse_bytes(text: str) -> float | None:
    """A number of bytes with a unit; None if the text is not one, or 0.

    >>> parse_bytes("16GiB"), parse_bytes("80 GB"), parse_bytes("1000"), parse_bytes("much")
    (17179869184.0, 80000000000.0, 1000.0, None)
    """
    match = _SIZE.fullmatch(text.strip())
    factor = None if match is None else _FACTORS.get(match[2].lower())
    return None if match is None or factor is None else float(match[1]) * factor or None


def format_shape(shape: tuple[int, ...], dtype: str) -> str:
    """A shape with its element type.

    >>> format_shape((8, 16), "f32"), format_shape((), "i32")
    ('f32[8, 16]', 'i32[]')
    """
    return f"{dtype}[{', '.join('?' if size < 0 else str(size) for size in shape)}]"


def counted(count: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "input"), counted(2, "input")
    ('1 input', '2 inputs')
    """
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
