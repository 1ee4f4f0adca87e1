"""What costs and no annotation mends: kernels without a rule, axes that divide no dimension, and too little memory."""

from __future__ import annotations

from collections.abc import Iterator

from pyshardy.checkup.cures import LEAST_GAIN
from pyshardy.checkup.values import Uneven, uneven_values
from pyshardy.core.mesh import Mesh
from pyshardy.core.text import format_bytes
from pyshardy.report.cost import format_duration
from pyshardy.report.diagnosis import Figures, Finding, FindingKind
from pyshardy.results.cost import Cost
from pyshardy.source.places import format_place
from pyshardy.source.values import value_text

_CALLS = ("stablehlo.custom_call",)
_NAMED = 3
"""The number of categories of memory in a sentence."""


def signs(found: Cost, now: Figures, mesh: Mesh) -> Iterator[tuple[float, Finding]]:
    """The share of a step that each costs, and the finding.

    Args:
        found: The estimate of the whole program.
        now: Its figures.
        mesh: Its mesh.
    """
    yield from _kernels(found, now)
    for one in uneven_values(found.partition.propagated, mesh):
        if one.bytes >= LEAST_GAIN * now.bytes:
            yield one.bytes / now.bytes, _uneven(one, now)
    if not found.fits:
        yield _too_large(found, now)


def _kernels(found: Cost, now: Figures) -> Iterator[tuple[float, Finding]]:
    """The custom calls that make devices communicate, because nothing says how to split them."""
    for row in found.estimate.collectives:
        cause = row.cause or ""
        share = row.seconds / now.seconds if now.seconds else 0.0
        if not cause.endswith(_CALLS) or share < LEAST_GAIN:
            continue
        at = f" at {format_place(row.source)}" if row.source else ""
        cost = f"{format_duration(row.seconds)} of a step"
        what = f"a kernel{at} has no sharding rule, so its operands are gathered whole: {cost}"
        cure = "call it inside jax.shard_map, or give it a rule with jax.experimental.custom_partitioning"
        why = f"{row.kind.replace('_', '-')} of {format_bytes(row.sent_bytes_per_device)} per device: {cause}"
        yield share, Finding(FindingKind.KERNEL, what, why, row.source, cure, now, None)


def _uneven(one: Uneven, now: Figures) -> Finding:
    value = one.one.value
    place = value.span.file, value.span.line, value.span.column
    size = value.shape[one.dim]
    what = (
        f"{value_text(one.one.name, value.function)} at {format_place(place)}: {one.axis!r} does not divide dimension "
        f"{one.dim} of {size}, which costs {format_bytes(round(one.bytes))} per device"
    )
    padded = -(-size // one.shards) * one.shards
    cure = f"pad the dimension to {padded}, a multiple of {one.shards}, or split another dimension along {one.axis!r}"
    return Finding(FindingKind.UNEVEN, what, one.why, place, cure, now, None)


def _too_large(found: Cost, now: Figures) -> tuple[float, Finding]:
    memory, limit = found.estimate.memory, found.estimate.memory_limit_bytes
    parts = sorted(memory.categories, key=lambda pair: -pair[1])[:_NAMED]
    held = ", ".join(f"{name} {format_bytes(size)}" for name, size in parts if size)
    what = f"the program does not fit: {format_bytes(memory.bytes)} of {format_bytes(round(limit))} per device"
    largest = parts[0][0] if parts else ""
    cure = (
        "jax.checkpoint around a layer, which computes activations again instead of keeping them; or micro-batches"
        if largest == "activations"
        else "a mesh with more devices along the axes that split these, or another axis for them: pyshardy search"
    )
    return now.bytes / limit - 1, Finding(FindingKind.MEMORY, what, f"at the peak: {held}", None, cure, now, None)
