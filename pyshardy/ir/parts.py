"""The part of a program that an op serves, as data in its location.

Passes give the ops that they make the location of the op that these serve, alone or inside of another. So the part of
an op can be read from whatever passes make of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir


def with_part(location: Any, part: Sequence[int]) -> Any:
    """A location that also says a part. The context must be entered.

    Args:
        location: The location of an op; None if it has none.
        part: The part, as numbers.
    """
    location = ir.Location.unknown() if location is None else location
    return ir.Location.fused([location], ir.DenseI64ArrayAttr.get(list(part)))


def part_in(location: Any) -> tuple[int, ...] | None:
    """The part that a location says, or the first of several; None if it says none.

    >>> from pyshardy.ir.context import make_context
    >>> with make_context():
    ...     part_in(ir.Location.name("cause", with_part(ir.Location.unknown(), (0, 1, -1))))
    (0, 1, -1)
    """
    while isinstance(location, ir.NameLoc):
        location = location.child_loc
    if not isinstance(location, ir.FusedLoc):
        return None
    metadata = None if location.metadata is None else location.metadata.maybe_downcast()
    if isinstance(metadata, ir.DenseI64ArrayAttr):
        return tuple([int(number) for number in metadata])
    return next((part for part in map(part_in, location.locations) if part is not None), None)
