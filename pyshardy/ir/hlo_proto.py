"""Finds the HLO module in protocol buffers, as XLA dumps them."""

from __future__ import annotations

from collections.abc import Iterator

_NAME, _COMPUTATIONS = 1, 3
_BYTES = 2
"""The wire type of a field with text, bytes or another message."""


def hlo_module_proto(content: bytes) -> bytes | None:
    """The `HloModuleProto` in some bytes: these bytes themselves, or the module of an `HloProto`; None otherwise.

    Both begin with field 1: the name of the module, or the module, which itself begins with the name.
    """
    fields = dict(_fields(content))
    first = fields.get(_NAME)
    if first is None:
        return None
    if _is_module(dict(_fields(first))):
        return first
    return content if _is_module(fields) else None


def _is_module(fields: dict[int, bytes]) -> bool:
    return _NAME in fields and _COMPUTATIONS in fields


def _fields(content: bytes) -> Iterator[tuple[int, bytes]]:
    """The number and content of the length-delimited fields of a message; empty if it is not a message.

    >>> list(_fields(bytes([10, 2, 104, 105, 16, 7])))
    [(1, b'hi')]
    """
    found: list[tuple[int, bytes]] = []
    position = 0
    while position < len(content):
        tag, position = _varint(content, position)
        kind, size = tag & 7, {1: 8, 5: 4}.get(tag & 7, 0)
        if kind == 0:
            _, position = _varint(content, position)
        elif kind == _BYTES:
            size, position = _varint(content, position)
            found.append((tag >> 3, content[position : position + size]))
        elif not size:
            return
        position += size
    if position == len(content):
        yield from found


def _varint(content: bytes, position: int) -> tuple[int, int]:
    """The varint at a position, and the position after it, which is past the end if the varint is not complete."""
    value = shift = 0
    while position < len(content) and shift < 70:
        byte = content[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, position
    return 0, len(content) + 1


_STACK_FRAMES = 17
_FILES, _LOCATIONS, _FRAMES = 1, 3, 4


def stack_places(module: bytes) -> list[list[tuple[str, int, int]]]:
    """For every stack frame of an `HloModuleProto`, numbered from 1, its calls: file, line and column, innermost first.

    Source: xla/service/hlo.proto, StackFrameIndexProto
    """
    index = next((content for number, content in _fields(module) if number == _STACK_FRAMES), None)
    if index is None:
        return [[]]
    entries = list(_fields(index))
    files = [content.decode(errors="replace") for number, content in entries if number == _FILES]
    locations = [_numbers(content) for number, content in entries if number == _LOCATIONS]
    frames = [_numbers(content) for number, content in entries if number == _FRAMES]
    found: list[list[tuple[str, int, int]]] = [[]]
    for number, frame in enumerate(frames, 1):
        location = locations[frame.get(1, 0) - 1]
        parent = frame.get(2, 0)
        place = files[location.get(1, 0) - 1], location.get(3, 0), location.get(4, 0)
        found.append([place, *(found[parent] if 0 < parent < number else [])])
    return found


def _numbers(content: bytes) -> dict[int, int]:
    """The varint fields of a message that has only such fields."""
    found = {}
    position = 0
    while position < len(content):
        tag, position = _varint(content, position)
        found[tag >> 3], position = _varint(content, position)
    return found
