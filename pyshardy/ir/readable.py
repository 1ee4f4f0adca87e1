"""Refuses a module that MLIR cannot print, or prints as text that it cannot read again."""

from __future__ import annotations

import re
from typing import Any

from jaxlib.mlir import ir

from pyshardy.errors import InvalidModuleError
from pyshardy.ir.context import make_context
from pyshardy.ir.diagnostics import errors_of
from pyshardy.ir.locations import source_position

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
_VHLO_FUNCTION = "vhlo.func_v1"
_VHLO_ATTRIBUTES = {"sym_name": "#vhlo.string_v1<", "function_type": "#vhlo.type_v1<!vhlo.func_v1<"}


def check_printable(module: Any, name: str) -> None:
    """Raise an error unless MLIR can print the functions of VHLO, the dialect of portable artifacts, in a module.

    MLIR takes the name and the type of such a function for what they should be. If they are something else, it prints
    what is in memory there, or ends the process.

    Args:
        module: The module, in the context that is entered; the names of its ops are UTF-8.
        name: The name of its source.

    Raises:
        InvalidModuleError: It holds a function with another name or type.
    """
    found: list[Any] = []

    def note(op: Any) -> Any:
        if op.name == _VHLO_FUNCTION:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(note)
    for function in found:
        _check_function(function, name)


def _check_function(op: Any, name: str) -> None:
    for key, start in _VHLO_ATTRIBUTES.items():
        found = str(op.attributes[key]) if key in op.attributes else ""
        if found and not found.startswith(start):
            raise InvalidModuleError(
                "reading a module",
                where=f"{name}, {op.name}",
                got=f"{key} = {_short(found)}",
                needed=f"{start}...>, as StableHLO writes it",
            )


def check_readable(text: str, context: Any) -> None:
    """Raise an error unless MLIR can read a text that it has printed.

    The text is read again only if it has something that MLIR prints but cannot read, which is rare.

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
    return _short(text.split("\n")[number - 1].strip())


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
