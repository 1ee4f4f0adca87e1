"""The ops of a module one after the other, in either order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyshardy.ir.blocks import Block

if TYPE_CHECKING:
    from pyshardy.ir.op import Op


def walk(op: Op) -> Iterator[Op]:
    """The op and all ops inside it, every op before the ops inside it. The op just yielded may be erased."""
    yield op
    pending: list[Op | Block | None] = _blocks_reversed(op)
    while pending:
        place = pending.pop()
        current = place.first if isinstance(place, Block) else place
        while current is not None:
            following = current.next
            yield current
            if current.regions:
                pending.append(following)
                pending += _blocks_reversed(current)
                break
            current = following


def _blocks_reversed(op: Op) -> list[Op | Block | None]:
    return [block for region in reversed(op.regions) for block in reversed(region.blocks)]


def walk_post_order(op: Op) -> Iterator[Op]:
    """All ops inside the op and then the op itself, every op after the ops inside it. Yielded ops may be erased."""
    for region in op.regions:
        for block in region.blocks:
            inner = block.first
            while inner is not None:
                following = inner.next
                if inner.regions:
                    yield from walk_post_order(inner)
                else:
                    yield inner
                inner = following
    yield op
