"""Signs of cost that no annotation mends: kernels without a rule, axes that divide no dimension, inputs with more
precision than their readers use, and too little memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import inf, prod

from pyshardy.checkup.cures import LEAST_GAIN
from pyshardy.checkup.kinds import manual_axes, padding
from pyshardy.checkup.kinds.kept_values import keeping_loop
from pyshardy.checkup.kinds.padding import UnevenWeight
from pyshardy.checkup.kinds.precision import KEPT, READ, too_exact
from pyshardy.checkup.kinds.values import Uneven, uneven_values
from pyshardy.core.mesh import Mesh
from pyshardy.core.text import format_bytes
from pyshardy.ir.locations import source_frames
from pyshardy.report.cost import format_duration
from pyshardy.report.diagnosis import Figures, Finding, FindingKind
from pyshardy.report.summary import TensorRow
from pyshardy.results.cost import Cost
from pyshardy.source.places import format_place
from pyshardy.source.values import value_text

_CALLS = ("stablehlo.custom_call",)
_NAMED = 3
"""The number of categories of memory in a sentence."""


def signs(found: Cost, now: Figures, mesh: Mesh) -> Iterator[tuple[float, Finding]]:
    """The share of a step that each costs, and the finding; infinite for a program that does not fit.

    Args:
        found: The estimate of the whole program.
        now: Its figures.
        mesh: Its mesh.
    """
    yield from _kernels(found, now)
    yield from _shard_maps(found, now, mesh)
    for one in uneven_values(found.partition.propagated, mesh):
        if one.bytes >= LEAST_GAIN * now.bytes:
            yield one.bytes / now.bytes, _uneven(one, now)
    for weight in padding.uneven_weights(found.partition.before, mesh):
        saved = round(weight.family.bytes * (1 - 1 / dict(mesh.axes)[weight.axis]))
        if weight.is_used and saved >= LEAST_GAIN * now.bytes:
            yield saved / now.bytes, _uneven_weight(weight, saved, now)
    rows = too_exact(found.partition.propagated)
    saved = sum(row.bytes_per_device for row in rows) // 2
    if saved and saved >= LEAST_GAIN * now.bytes:
        yield saved / now.bytes, _too_exact(rows, saved, now)
    if not found.fits:
        yield inf, _too_large(found, now)


def uneven_parts(found: Cost, now: Figures, mesh: Mesh) -> Iterator[tuple[float, Finding]]:
    """The dimensions that an axis divides only in part, for which devices communicate: its share of a step, and it.

    These are told of the program as it is, as another cure may only leave the axis out.

    Args:
        found: The estimate of the whole program.
        now: Its figures.
        mesh: Its mesh.
    """
    sizes = dict(mesh.axes)
    rows: defaultdict[tuple[str, str, int], float] = defaultdict(float)
    for row in found.estimate.collectives:
        if row.source is not None:
            rows[row.windowed or row.kind, row.source[0], row.source[1]] += row.seconds
    part = found.partition
    shapes = part.why.subject.program.shapes
    lines: dict[tuple[str, int, int], dict[tuple[str, str, int], float]] = {}
    for one in part.explained_collectives:
        key = one.story.windowed or one.story.kind, one.story.file or "", one.story.line or 0
        for value, dim, axes in (place for cause in one.causes for place in cause.places):
            size = (shapes[part.why.subject.holder(value)] or ())[dim]
            for axis in axes:
                if not axis.is_full and size % sizes[axis.name] and rows[key]:
                    lines.setdefault((axis.name, dim, size), {})[key] = rows[key]
    for (name, dim, size), seconds in lines.items():
        share = sum(seconds.values()) / now.seconds if now.seconds else 0.0
        if share >= LEAST_GAIN:
            _, file, line = max(seconds, key=lambda key: seconds[key])
            what = (
                f"{name!r}, which has {sizes[name]} devices, does not divide dimension {dim} of {size} at "
                f"{format_place((file, line, 0))}: {format_duration(sum(seconds.values()))} of a step"
            )
            why = "only a part of the axis splits it, and devices communicate where the whole axis is before and after"
            yield (
                share,
                Finding(FindingKind.UNEVEN, what, why, (file, line, 0), _padding(size, sizes[name], name), now, None),
            )


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


def _shard_maps(found: Cost, now: Figures, mesh: Mesh) -> Iterator[tuple[float, Finding]]:
    """The calls of `jax.shard_map` whose specs leave out axes, along which devices then compute the same."""
    rows = {row.source[:2]: row.kernel_seconds for row in found.by("line") if row.source}
    module, sizes = found.partition.before, dict(mesh.axes)
    for one in manual_axes.idle_axes(module, mesh):
        bodies = [inner for _, body in one.ops for inner in body]
        lines = {place[:2] for inner in bodies for place in source_frames(inner.location, module.name)[:1]}
        seconds = sum(rows.get(line, 0.0) for line in lines) * (1 - 1 / prod(sizes[axis] for axis in one.axes))
        share = seconds / found.estimate.serial_seconds if found.estimate.serial_seconds else 0.0
        if share >= LEAST_GAIN:
            where = "on dimensions whose parts are computed alone, as of rows or heads"
            cure = f"name {one.names} in in_specs and out_specs {where}"
            what = f"{one.what}: {format_duration(seconds)} of a step"
            yield share, Finding(FindingKind.KERNEL, what, manual_axes.WHY, one.place, cure, now, None)


def _uneven(one: Uneven, now: Figures) -> Finding:
    value = one.one.value
    place = value.span.file, value.span.line, value.span.column
    size = value.shape[one.dim]
    what = (
        f"{value_text(one.one.name, value.function)} at {format_place(place)}: {one.axis!r} does not divide dimension "
        f"{one.dim} of {size}, which costs {format_bytes(round(one.bytes))} per device"
    )
    return Finding(FindingKind.UNEVEN, what, one.why, place, _padding(size, one.shards, one.axis), now, None)


def _uneven_weight(one: UnevenWeight, saved: int, now: Figures) -> Finding:
    what = f"{padding.what_is_whole([one])}, which costs {format_bytes(saved)} per device"
    cure = _padding(one.size, one.multiple, one.axis)
    return Finding(FindingKind.UNEVEN, what, padding.WHY, None, cure, now, None)


def _padding(size: int, shards: int, axis: str) -> str:
    padded = -(-size // shards) * shards
    return f"pad the dimension to {padded}, a multiple of {shards}, or split another dimension along {axis!r}"


def _too_exact(rows: Sequence[TensorRow], saved: int, now: Figures) -> Finding:
    are, them = ("are", "them") if len(rows) > 1 else ("is", "it")
    others = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    what = f"`{rows[0].name}`{others} {are} kept in {KEPT}, and read as {READ} alone"
    why = f"whatever uses {them} converts {them} to {READ} first, and no output replaces {them}"
    cure = f"keep {them} in {READ}, as in `x.astype('bfloat16')`, which saves {format_bytes(saved)} per device"
    return Finding(FindingKind.PRECISION, what, why, None, cure, now, None)


def _too_large(found: Cost, now: Figures) -> Finding:
    memory, limit = found.estimate.memory, found.estimate.memory_limit_bytes
    parts = sorted(memory.categories, key=lambda pair: -pair[1])[:_NAMED]
    held = ", ".join(f"{name} {format_bytes(size)}" for name, size in parts if size)
    needs = f"it needs {format_bytes(memory.bytes)} of {format_bytes(round(limit))} per device"
    what = f"the program does not fit, and no other cure mends that: with all of them {needs}"
    if not parts or parts[0][0] != "activations":
        cure = "a mesh with more devices along the axes that split these, or another axis for them: pyshardy search"
        return Finding(FindingKind.MEMORY, what, f"at the peak: {held}", None, cure, now, None)
    loop = keeping_loop(found.partition.before)
    patch = "" if loop is None else loop.patch()
    of = f"what jax.lax.scan runs at {format_place(loop.place)}" if loop is not None and patch else "a layer"
    cure = f"jax.checkpoint around {of}, which computes activations again instead of keeping them; or micro-batches"
    place = None if loop is None else loop.place
    return Finding(FindingKind.MEMORY, what, f"at the peak: {held}", place, cure, now, None, patch)
