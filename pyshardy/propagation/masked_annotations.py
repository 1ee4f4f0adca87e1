"""Annotations without the dimensions that come in later rounds, and these dimensions given back.

Source: docs/semantics/propagation.md#user-priorities
"""

from __future__ import annotations

from collections.abc import Mapping

from pyshardy.core.sharding import TensorSharding
from pyshardy.propagation.layout import Layout
from pyshardy.propagation.user_priorities import mask, restore


def masked_all(layout: Layout) -> tuple[list[TensorSharding | None], Mapping[int, TensorSharding]]:
    """The shardings of all values in the first round, and the annotations of which dimensions come later."""
    program = layout.program
    first: list[TensorSharding | None] = list(program.shardings)
    if not layout.options.user_priorities:
        return first, {}
    originals: dict[int, TensorSharding] = {}
    known: dict[TensorSharding, tuple[TensorSharding, bool]] = {}
    for value, sharding in enumerate(program.shardings):
        if sharding is None:
            continue
        if sharding not in known:
            known[sharding] = masked(layout, sharding)
        first[value], is_hidden = known[sharding]
        if is_hidden:
            originals[value] = sharding
        for sibling in program.siblings.get(value, ()) if first[value] is not sharding else ():
            if first[sibling] is None:
                rank = len(program.shapes[sibling] or ())
                first[sibling] = TensorSharding.fully_replicated(sharding.mesh, rank, is_open=True)
    return first, originals


def masked(layout: Layout, sharding: TensorSharding) -> tuple[TensorSharding, bool]:
    """An annotation as it is in the first round, and whether dimensions of it come later."""
    priorities = {dim.priority for dim in sharding.dims} if layout.options.user_priorities else {None}
    return sharding if priorities <= {None} else mask(sharding, layout.program.meshes), any(priorities)


def restored(current: TensorSharding | None, original: TensorSharding, priority: int) -> TensorSharding | None:
    """A sharding with the dimensions of a priority as annotated; None if that changes nothing.

    Raises:
        InvalidShardingError: It is not valid.
    """
    if current is None or priority not in {dim.priority for dim in original.dims}:
        return None
    return restore(current, original, priority)
