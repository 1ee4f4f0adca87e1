"""The cause of an op, as part of its location (see `transforms/reshards/causes.py`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pyshardy.ir.strings import location_name, named_location

_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"(:\d)?')
REDUCTIONS = {
    "add": "sum",
    "multiply": "product",
    "maximum": "max",
    "minimum": "min",
    "and": "and",
    "or": "or",
    "xor": "xor",
}
"""The name of a combination of values, by the StableHLO op that combines two of them."""
OTHER_REDUCTION = "reduction"
"""The name of a combination by any other body."""
BORDERS = "borders"
"""The name of the parts of shards that devices send because windows overlap them."""
_WHAT = "|".join(("reshard", BORDERS, *REDUCTIONS.values(), OTHER_REDUCTION))
_CAUSE = re.compile(rf"(?:(.*)/)?((?:{_WHAT}) of (?:operand|result)(?: \d+)? of [^/]+)")
_PART_OF_CAUSE = re.compile(rf"(?:{_WHAT}) of (?:operand|result)")


def with_cause(location: Any, cause: str) -> Any:
    """The location of an op together with the cause of another op, in the scope that JAX gave the op."""
    name = location_name(location)
    return named_location(cause if name is None else f"{name}/{cause}", location)


def _names(text: str) -> Iterator[str]:
    """The quoted strings in a location that are not file names, one by one: with the calls that led there it is long.

    >>> list(_names('loc(fused["a"("f.py":3:4), "-":5:6])'))
    ['a']
    """
    return (match[1] for match in _QUOTED.finditer(text) if match[2] is None)


def cause_of(location: Any) -> str | None:
    """The cause of an op that a location states; None if it states none.

    >>> cause_of('loc("jit(f)/dot_general/reshard of operand 1 of stablehlo.dot_general"("f.py":3:4))')
    'reshard of operand 1 of stablehlo.dot_general'
    """
    text = str(location)
    if _PART_OF_CAUSE.search(text) is None:
        return None
    return next((match[2] for match in map(_CAUSE.fullmatch, _names(text)) if match), None)


def scope_of(location: Any) -> str | None:
    """The name that JAX gave to the op at a location; None if it has none.

    >>> scope_of('loc("jit(f)/dot_general/reshard of operand 1 of stablehlo.dot_general"("f.py":3:4))')
    'jit(f)/dot_general'
    >>> scope_of('loc("jit(f)/tanh"("f.py":3:4))')
    'jit(f)/tanh'
    """
    name = next(_names(str(location)), None)
    match = name and _CAUSE.fullmatch(name)
    return match[1] if match else name
