"""Advice, with figures, for programs of which no candidate fits into memory."""

from __future__ import annotations

from math import ceil, prod
from typing import Final

from pyshardy.core.text import format_bytes
from pyshardy.searching.autopartition.moves import batch_class
from pyshardy.searching.autopartition.space import Assignment, Space

_MUCH: Final = 0.1
"""From this share of the memory on, a note says how optimizer state can leave the device."""


def advice(space: Space, assignment: Assignment, peak: float, limit: float) -> list[str]:
    """Sentences on what needs the memory, and on ways to need less.

    Args:
        space: The decisions.
        assignment: The assignment with the lowest peak memory.
        peak: Its peak memory, in bytes.
        limit: The memory of a device, in bytes.
    """
    held = space.base_bytes(assignment)
    rest = max(0.0, peak - held)
    devices = prod(size for _, size in space.axes)
    found = [
        f"no candidate fits into memory: the smallest needs {format_bytes(round(peak))}, {peak / limit:.2f} times the "
        f"limit; {format_bytes(round(held))} of this are inputs and outputs, {format_bytes(round(rest))} are other "
        f"values"
    ]
    whole = sum(group.bytes * len(group.members) for group in space.groups)
    if whole / max(1, devices) > limit:
        found.append(f"the inputs alone need at least {ceil(whole / limit)} devices, however they are sharded")
    if held < limit and rest:
        batch = batch_class(space)
        factor = ceil(rest / (limit - held))
        if batch is not None:
            group, dim = space.classes[batch].places[0]
            size = space.groups[group].shape[dim]
            found.append(
                f"with a batch of {max(1, size // factor)} instead of {size}, the other values need about "
                f"{format_bytes(round(rest / factor))}, if their size is proportional to the batch; jax.checkpoint "
                f"around layers also saves memory; search(step, ..., remat=[...], microbatches=[...]) tries both"
            )
    else:
        found.append(f"on about {ceil(devices * peak / limit)} devices it would fit, if all values were split evenly")
    state = sum(
        group.bytes * len(group.members) / space.shards(number, dims)
        for number, (group, dims) in enumerate(zip(space.groups, assignment))
        if group.twin is not None
    )
    rate = space.problem.topology.hardware.host_bytes_per_s
    if rate and state > _MUCH * peak:
        found.append(
            f"{format_bytes(round(state))} are optimizer state, which can stay in the host's memory (jax.device_put to "
            f"pinned_host): copying it to the device and back takes {2 * state / rate:.2g} s of every step"
        )
    return found
