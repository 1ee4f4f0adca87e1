"""Source lines for inlined ops: JAX forgets those of some functions that it differentiates, such as `jnp.take`."""

from __future__ import annotations

from pyshardy.ir.causes import scope_of
from pyshardy.ir.diagnostics import source_frames
from pyshardy.ir.nodes import Op
from pyshardy.ir.strings import named_location


def has_forgotten(function: Op) -> bool:
    """Whether nothing is known of the line behind a function, by its last op."""
    last = function.region.block.last
    op = None if last is None else last.prev
    return op is not None and not source_frames(op.location)


def recall(op: Op, call: Op) -> None:
    """Give an op without a line that of the call it was inlined at, and the name of the call before its own."""
    if source_frames(op.location):
        return
    names = [name for name in (scope_of(call.location), scope_of(op.location)) if name]
    op.location = named_location("/".join(names), call.location) if names else call.location
