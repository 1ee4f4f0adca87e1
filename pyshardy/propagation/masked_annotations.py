"""Annotations without the dimensions of later user priorities, and the restoring of these dimensions.

Source: docs/semantics/propagation.md#user-priorities
"""

from __future__ import annotations

from collections.abc import Mapping

from pyshardy.core.sharding import TensorSharding
from pyshardy.propagation.layout import Layout
from pyshardy.propagation.user_priorities import mask, restore


def masked_all(layout: Layout) -> tuple[list[TensorSharding | None], Mapping[int, TensorSharding]]:
    """The shardings of all values in the first round, and by value the annotations with dimensions of later rounds."""
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
    """An annotation as it is in the first round, and whether it has dimensions of later rounds."""
    priorities = {dim.priority for dim in sharding.dims} if layout.options.user_priorities else {None}
    return sharding if priorities <= {None} else mask(sharding, layout.program.meshes), any(priorities)


def restored(current: TensorSharding | None, original: TensorSharding, priority: int) -> TensorSharding | None:
    """A sharding with the dimensions of a user priority as annotated; None if the annotation has none.

    Raises:
        InvalidShardingError: The restored sharding is invalid.
    """
    if current is None or priority not in {dim.priority for dim in original.dims}:
        return None
    return restore(current, original, priority)
