"""Loads HLO: text and protocol buffers, as in dumps of XLA."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyshardy.errors import InvalidModuleError
from pyshardy.ir.functions import main_function, result_attrs, result_count, set_result_attr
from pyshardy.ir.hlo import bytecode_of_hlo_proto, bytecode_of_hlo_text
from pyshardy.ir.hlo_attributes import HLO_SHARDING
from pyshardy.ir.module import Module
from pyshardy.ir.strings import string_of

_TEXT = re.compile(r"(?:\s|//[^\n]*\n|/\*.*?\*/)*HloModule\b", re.DOTALL)
_OPEN_RESULTS = re.compile(rb"\ballow_spmd_sharding_propagation_to_output=\{([a-z,]+)\}")
_SCHEDULED = re.compile(r"\bis_scheduled=true\b")
_NAME, _COMPUTATIONS = 1, 3
_BYTES = 2
"""The wire type of a field with text, bytes or another message."""


def is_hlo_text(text: str) -> bool:
    """Whether a text is an HLO module.

    >>> is_hlo_text("HloModule jit_f, num_partitions=8"), is_hlo_text("module @jit_f {}")
    (True, False)
    """
    return _TEXT.match(text) is not None


def load_hlo_text(text: str, name: str) -> bytes:
    """The StableHLO of HLO text, as bytecode; `name` is its name in messages.

    Raises:
        InvalidModuleError: It is not an HLO module, StableHLO cannot express it, or it is already compiled.
    """
    if _SCHEDULED.search(text.lstrip().partition("\n")[0]) is not None:
        raise InvalidModuleError(
            "reading a module",
            where=name,
            got="HLO that XLA has partitioned and scheduled: the program of one device",
            needed="the HLO before that, such as *.before_optimizations.txt",
        )
    return bytecode_of_hlo_text(text, name)


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


def load_hlo_proto(proto: bytes, name: str) -> bytes:
    """The StableHLO of a serialized `HloModuleProto`, as bytecode; `name` is its name in messages."""
    return bytecode_of_hlo_proto(proto, name)


def with_open_results(module: Module, content: bytes) -> Module:
    """The module without the shardings of results that HLO text leaves to propagation.

    If one result has a sharding, HLO gives all results one. Its first line tells which of them may change.

    Args:
        module: The module that was read from it.
        content: The HLO. Only text has this information.
    """
    match = _OPEN_RESULTS.search(content.partition(b"\n")[0])
    if match is None:
        return module
    flags = match[1].split(b",")
    root = module.copy_root()
    main = main_function(root)
    count = result_count(main)
    for index, flag in enumerate(flags * count if len(flags) == 1 else flags[:count]):
        if flag == b"true" and string_of(result_attrs(main, index).get(HLO_SHARDING)) == "{replicated}":
            set_result_attr(main, index, HLO_SHARDING, None)
    return module.with_root(root)


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
