"""Reads and makes MLIR locations: the name that JAX gave an op, the calls that led to it, what a collective is for.

A location is read from its text, because the bindings end the process if a name is not UTF-8.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from jaxlib.mlir import ir

from pyshardy.core.needs import Need
from pyshardy.core.text import quote, unquote
from pyshardy.ir.strings import is_utf8, readable

THIS_FILE = "-"
"""MLIR's name for the module that it reads."""
_STRING = r'"((?:[^"\\]|\\.)*)"'
_NAME_OR_FILE = re.compile(rf"{_STRING}(:\d)?")
_CALL = re.compile(rf"(?:{_STRING}\()?{_STRING}:(\d+):(\d+)(?: to (\d+)?:(\d+))?")
_MADE_UP = re.compile(r"Arg_(\d{1,9})(?:\.\d+)?")
_NAME = re.compile(rf"loc\({_STRING}", re.DOTALL)


class Call(NamedTuple):
    """One of the calls that led to an op.

    Attributes:
        function: The function that it is in; empty if unknown.
        file: The file.
        line: The line, from 1.
        column: The column.
        end_line: The line on which the expression ends.
        end_column: The column there; None if the location is no range.
    """

    function: str
    file: str
    line: int
    column: int
    end_line: int
    end_column: int | None = None

    @property
    def place(self) -> tuple[str, int, int]:
        """File, line and column."""
        return self.file, self.line, self.column


class Located(NamedTuple):
    """The content of a location.

    Attributes:
        scope: The name that JAX gave the op; None if it has none.
        need: What it is for, if it is a collective whose location says so.
        calls: The calls that led to it, innermost first.
    """

    scope: str | None
    need: Need | None
    calls: tuple[Call, ...]


def read_location(location: Any, name: str = THIS_FILE) -> Located:
    """The content of a location, or of its text.

    Args:
        location: The location.
        name: The name of the text that the module was read from.

    >>> found = read_location('loc("jit(f)/add/reshard of operand 1 of stablehlo.add"("mlp"("net.py":3:8 to :20)))')
    >>> found.scope, str(found.need), found.calls[0].function, found.calls[0].place
    ('jit(f)/add', 'reshard of operand 1 of stablehlo.add', 'mlp', ('net.py', 3, 8))
    """
    text = str(location)
    scope, need = _scope_and_need(text)
    calls = []
    for function, file, line, column, end_line, end_column in _CALL.findall(text):
        end = (int(end_line or line), int(end_column)) if end_column else (int(line), None)
        file = name if file == THIS_FILE else file
        calls.append(Call("" if function == scope else function, file, int(line), int(column), *end))
    return Located(scope, need, tuple(calls))


def scope_of(location: Any) -> str | None:
    """The name that JAX gave to the op at a location; None if it has none.

    >>> scope_of('loc("jit(f)/dot_general/reshard of operand 1 of stablehlo.dot_general"("f.py":3:4))')
    'jit(f)/dot_general'
    """
    return _scope_and_need(str(location))[0]


def _scope_and_need(text: str) -> tuple[str | None, Need | None]:
    """The first name in a location, without a need at its end, and the first need; names of files do not count."""
    names = (match[1] for match in _NAME_OR_FILE.finditer(text) if match[2] is None)
    scope, is_first = None, True
    for name in names:
        around, _, last = name.rpartition("/")
        need = Need.parse(last) if " of " in last else None
        if is_first:
            scope, is_first = name if need is None else around or None, False
        if need is not None or " of " not in text:
            return scope, need
    return scope, None


def source_frames(location: Any, name: str = THIS_FILE) -> list[tuple[str, int, int]]:
    """The places of the calls that led to an op, innermost first.

    Args:
        location: The location.
        name: The name of the text that the module was read from.

    >>> source_frames('loc(callsite("net.py":3:8 at callsite("step"("train.py":31:4) at "main.py":9:1)))')
    [('net.py', 3, 8), ('train.py', 31, 4), ('main.py', 9, 1)]
    """
    found = _CALL.findall(str(location))
    return [(name if file == THIS_FILE else file, int(line), int(column)) for _, file, line, column, _, _ in found]


def source_position(location: Any) -> tuple[str, int, int] | None:
    """File, line and column of the innermost place in a location; None if it has none.

    >>> source_position('loc("model.mlir":3:8)')
    ('model.mlir', 3, 8)
    """
    return next(iter(source_frames(location)), None)


def format_location(location: Any) -> str:
    """A location as file, line and column if it has them.

    Locations of JAX name the Python line; for a fused or named location, the file inside it is shown.
    """
    text = str(location) if location is not None else "unknown"
    if text.startswith("loc(") and text.endswith(")"):
        text = text[len("loc(") : -1]
    return text.replace('"', "") if text.startswith('"') and text.count('"') == 2 else text


def location_name(location: Any) -> str | None:
    """The name of a location; None if it has none. The bindings end the process if a name is not UTF-8."""
    if not isinstance(location, ir.NameLoc):
        return None
    match = _NAME.match(str(location))
    return None if match is None else unquote(match[1])


def named_location(name: str, location: Any) -> Any:
    """A location under a name."""
    if is_utf8(name):
        return ir.Location.name(name, location)
    return ir.Location.from_attr(ir.Attribute.parse(f"loc({quote(name)}({str(location)[len('loc(') : -1]}))"))


def with_need(location: Any, need: Need) -> Any:
    """The location of a collective: the one of the op that needs it, with the need added to its name scope."""
    name = location_name(location)
    return named_location(str(need) if name is None else f"{name}/{need}", location)


def argument_name(location: Any, index: int) -> str:
    """The name of an argument for users: from its location, if JAX wrote one, else made of its number.

    For an argument without a name, XLA makes one up (`Arg_0.47`); it says no more than the number.
    """
    name = location_name(location)
    made_up = None if name is None else _MADE_UP.fullmatch(name)
    is_own = name is not None and (made_up is None or int(made_up[1]) != index)
    return readable(name) if name is not None and is_own else f"arg{index}"
