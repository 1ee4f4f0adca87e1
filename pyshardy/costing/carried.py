"""Keeps arrays of one number that a loop reads from outside, as XLA for GPUs does.

An array of one number costs nothing where a kernel makes it for itself. As a part of a loop's state it is an array:
XLA moves constants into loops, but not broadcasts. JAX passes such arrays to scans when a gradient is taken, as the
other side of a mask.
"""

from __future__ import annotations

from pyshardy.costing.flat import Flat, FlatBlock

_BROADCAST = "stablehlo.broadcast_in_dim"


def with_carried(flat: Flat) -> Flat:
    """A program in which repeated numbers that a loop reads from outside are arrays.

    Args:
        flat: The program.
    """
    found: set[int] = set()
    _add(flat.body, flat, found)
    return flat._replace(uniform=flat.uniform - found, constants=flat.constants - found) if found else flat


def _add(block: FlatBlock, flat: Flat, found: set[int]) -> None:
    """Add the arrays that loops of a block read, and those inside of it."""
    made = {value for one in block.ops if one.op.kind.name == _BROADCAST for value in one.op.results}
    for one in block.ops:
        for region in one.inner:
            if one.op.is_loop:
                found.update(value for value in region.outer if value in made and value in flat.uniform)
            _add(region, flat, found)
