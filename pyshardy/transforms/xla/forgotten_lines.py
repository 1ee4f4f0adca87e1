"""Source lines for inlined ops: JAX forgets those of some functions that it differentiates, such as `jnp.take`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from pyshardy.ir.locations import named_location, scope_of, source_frames
from pyshardy.ir.nodes import Op
from pyshardy.ir.source import location_at, location_identity


def has_forgotten(function: Op) -> bool:
    """Whether nothing is known of the line behind a function, by its last op."""
    last = function.region.block.last
    op = None if last is None else last.prev
    return op is not None and not source_frames(op.location)


class LineRecaller:
    """Gives inlined ops without a line that of their call; ops and calls of one location share the result."""

    def __init__(self) -> None:
        # By the locations of op and call: the new location, None to keep it; and both places, which must stay alive.
        self._found: dict[tuple[Hashable, Hashable], tuple[Any, Any, Any]] = {}

    def recall(self, op: Op, call: Op) -> None:
        """Give an op without a line that of a call, and the name of the call before its own."""
        own, of_call = op.place, call.place
        key = location_identity(own), location_identity(of_call)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = _recalled(location_at(own), location_at(of_call)), own, of_call
        if found[0] is not None:
            op.location = found[0]


def _recalled(own: Any, of_call: Any) -> Any:
    """The location of an op that was inlined; None if its own has a line."""
    if source_frames(own):
        return None
    names = [name for name in (scope_of(of_call), scope_of(own)) if name]
    return named_location("/".join(names), of_call) if names else of_call
