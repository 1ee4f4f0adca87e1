"""Refuses a module that MLIR prints as text that it cannot read again."""

from __future__ import annotations

import re
from typing import Any

from jaxlib.mlir import ir

from pyshardy.errors import InvalidModuleError
from pyshardy.ir.context import make_context
from pyshardy.ir.diagnostics import errors_of, source_position

_SUSPECTS = (
    "<<INVALID EMPTY SYMBOL>>",  # what MLIR prints for a symbol without a name
    " : i0",  # bytecode may hold a number of no bits that is not 0
    "result_accuracy<",  # numbers that are infinite or not a number
    "!quant.",
    "!vhlo.tuple",  # one without elements
)
"""What stands in a text that may not be readable."""
_EMPTY_KEY = re.compile(r'[{,] ?""(?: =|[,}])')
_NO_MESH = re.compile(r"replica_group_mesh_axes<mesh = (?!@|#stablehlo\.mesh<)")
_LONGEST = 100


def check_readable(text: str, context: Any) -> None:
    """Raise an error unless MLIR can read a text that it has printed.

    Text is read only if something stands in it that MLIR is known to print but not to read: nearly all text is not.

    Args:
        text: A whole module.
        context: The context of the module.

    Raises:
        InvalidModuleError: The text cannot be read; says where and why.
    """
    if not _is_suspect(text):
        return
    reader = make_context(context.allow_unregistered_dialects)
    with reader, errors_of(reader) as errors:
        try:
            ir.Module.parse(text)
        except (ir.MLIRError, ValueError) as error:
            reason = errors[0].message if errors else str(error)
            position = source_position(errors[0].location) if errors else None
            raise InvalidModuleError(
                "writing a module as text",
                where=None if position is None else _line(text, position[1]),
                got=f"what MLIR prints but cannot read: {reason}",
                needed="names, attributes and types that text can hold",
                hint="bytecode: a file that ends in .mlirbc, or -emit-bytecode",
            ) from error


def _is_suspect(text: str) -> bool:
    if any(suspect in text for suspect in _SUSPECTS):
        return True
    patterns = (('""', _EMPTY_KEY), ("replica_group_mesh_axes", _NO_MESH))
    return any(part in text and pattern.search(text) for part, pattern in patterns)


def _line(text: str, number: int) -> str:
    """A line of a text, cut if it is long."""
    line = text.split("\n")[number - 1].strip()
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
