"""What made an op necessary, as part of its location (see `transforms/reshards/causes.py`)."""

from __future__ import annotations

import re
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
"""What a combination of values is called, by the op of StableHLO that combines two of them."""
OTHER_REDUCTION = "reduction"
"""What a combination by any other body is called."""
BORDERS = "borders"
"""What devices send of their shards because windows reach over them."""
_WHAT = "|".join(("reshard", BORDERS, *REDUCTIONS.values(), OTHER_REDUCTION))
_CAUSE = re.compile(rf"(?:(.*)/)?((?:{_WHAT}) of (?:operand|result)(?: \d+)? of [^/]+)")


def with_cause(location: Any, cause: str) -> Any:
    """The location of an op with what made another one necessary, in the scope that JAX gave the op."""
    name = location_name(location)
    return named_location(cause if name is None else f"{name}/{cause}", location)


def _names(location: Any) -> list[str]:
    """What stands in quotes in a location and is no file.

    >>> _names('loc(fused["a"("f.py":3:4), "-":5:6])')
    ['a']
    """
    return [match[1] for match in _QUOTED.finditer(str(location)) if match[2] is None]


def cause_of(location: Any) -> str | None:
    """What a location says that made an op necessary; None if it does not say.

    >>> cause_of('loc("jit(f)/dot_general/reshard of operand 1 of stablehlo.dot_general"("f.py":3:4))')
    'reshard of operand 1 of stablehlo.dot_general'
    """
    return next((match[2] for match in map(_CAUSE.fullmatch, _names(location)) if match), None)


def scope_of(location: Any) -> str | None:
    """The name that JAX gave to the op at a location; None if it has none.

    >>> scope_of('loc("jit(f)/dot_general/reshard of operand 1 of stablehlo.dot_general"("f.py":3:4))')
    'jit(f)/dot_general'
    >>> scope_of('loc("jit(f)/tanh"("f.py":3:4))')
    'jit(f)/tanh'
    """
    for name in _names(location):
        match = _CAUSE.fullmatch(name)
        return match[1] if match else name
    return None
