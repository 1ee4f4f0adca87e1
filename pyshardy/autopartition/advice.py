"""What would help where nothing fits into memory, with figures."""

from __future__ import annotations

from math import ceil, prod

from pyshardy.autopartition.moves import batch_class
from pyshardy.autopartition.space import Assignment, Space
from pyshardy.core.text import format_bytes


def advice(space: Space, assignment: Assignment, peak: float, limit: float) -> list[str]:
    """Sentences on what needs the memory, and what would make it less.

    Args:
        space: The decisions.
        assignment: What comes closest to the limit.
        peak: Its peak memory, in bytes.
        limit: What a device has, in bytes.
    """
    held = space.base_bytes(assignment)
    rest = max(0.0, peak - held)
    devices = prod(size for _, size in space.axes)
    found = [
        f"nothing that was tried fits: the nearest needs {format_bytes(round(peak))}, {peak / limit:.2f} times the "
        f"limit; inputs and outputs hold {format_bytes(round(held))} of it, the rest is {format_bytes(round(rest))}"
    ]
    whole = sum(group.bytes * len(group.members) for group in space.groups)
    if whole / max(1, devices) > limit:
        found.append(f"inputs alone need at least {ceil(whole / limit)} devices, however they are sharded")
    if held < limit and rest:
        batch = batch_class(space)
        factor = ceil(rest / (limit - held))
        if batch is not None:
            group, dim = space.classes[batch].places[0]
            size = space.groups[group].shape[dim]
            found.append(
                f"a batch of {max(1, size // factor)} in the place of {size} would make the rest about "
                f"{format_bytes(round(rest / factor))} (if it shrinks with the batch), "
                f"as would jax.checkpoint around layers"
            )
    else:
        found.append(
            f"with more devices, about {ceil(devices * peak / limit)}, shards would fit if all were split evenly"
        )
    return found
