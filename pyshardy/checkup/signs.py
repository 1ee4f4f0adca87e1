"""Signs of cost that no annotation mends: kernels without a rule, axes that divide no dimension, inputs with more
precision than their readers use, and too little memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import inf

from pyshardy.checkup.cures import LEAST_GAIN
from pyshardy.checkup.families import Family, axes_of, families, frozen
from pyshardy.checkup.precision import KEPT, READ, too_exact
from pyshardy.checkup.values import Uneven, uneven_values
from pyshardy.core.mesh import Mesh
from pyshardy.core.text import format_bytes
from pyshardy.ir.device_groups import grouping
from pyshardy.ir.locations import source_frames
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import module_meshes
from pyshardy.ir.symbols import SymbolTable
from pyshardy.report.cost import format_duration
from pyshardy.report.diagnosis import Figures, Finding, FindingKind
from pyshardy.report.summary import TensorRow
from pyshardy.results.cost import Cost
from pyshardy.results.hints.code import Code
from pyshardy.source.places import SourcePlace, format_place
from pyshardy.source.values import value_text

_MANUAL = "sdy.manual_computation"
_CALLS = ("stablehlo.custom_call",)
_JOINING = ("stablehlo.all_reduce", "stablehlo.all_gather", "stablehlo.reduce_scatter")
"""What brings the parts of several devices together."""
_KEEPING = frozenset((_MANUAL, "stablehlo.while", "stablehlo.dynamic_update_slice", "stablehlo.return"))
"""What reads what a body keeps for its gradient."""
_LARGE = 16
"""A dimension is worth splitting if a device gets so many of its elements."""
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
    for family, dim, axis, size in _uneven_weights(found.partition.before, mesh):
        saved = round(family.bytes * (1 - 1 / dict(mesh.axes)[axis]))
        if saved >= LEAST_GAIN * now.bytes:
            yield saved / now.bytes, _uneven_weight(family, dim, axis, size, dict(mesh.axes)[axis], saved, now)
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
    """The calls of `jax.shard_map` whose specs leave out an axis, along which devices then compute the same.

    They leave it out of all that they give, and do not sum or gather along it: else parts come together there.
    """
    rows = {row.source[:2]: row.kernel_seconds for row in found.by("line") if row.source}
    bodies: dict[tuple[SourcePlace, str], set[tuple[str, int]]] = {}
    module = found.partition.before
    meshes = module_meshes(module.root)
    for op in ops_named(module.root, (_MANUAL,)):
        used = _axes_together(module, op, meshes)
        place = next((one for one in Code.of(op, module.name).path), None)
        for axis in [axis for axis, size in mesh.axes if size > 1 and axis not in used]:
            lines = {one[:2] for inner in _body(module, op) for one in source_frames(inner.location, module.name)[:1]}
            if place is not None:
                bodies.setdefault((place, axis), set()).update(lines)
    for (place, axis), lines in bodies.items():
        seconds = sum(rows.get(line, 0.0) for line in lines) * (1 - 1 / dict(mesh.axes)[axis])
        share = seconds / found.estimate.serial_seconds if found.estimate.serial_seconds else 0.0
        if share < LEAST_GAIN:
            continue
        what = (
            f'the specs of jax.shard_map at {format_place(place)} leave out "{axis}", so its devices compute the same: '
            f"{format_duration(seconds)} of a step"
        )
        why = "what a spec does not name is gathered whole before the function runs"
        cure = f'name "{axis}" in in_specs and out_specs on a dimension whose parts are computed alone, such as heads'
        yield share, Finding(FindingKind.KERNEL, what, why, place, cure, now, None)


def _axes_together(module: Module, op: Op, meshes: Mapping[str, Mesh]) -> set[str]:
    """The axes whose devices give different parts of the results, or bring parts together.

    What is kept for the gradient has the axes of all devices, whatever these compute, and is for another such op.
    """
    given = [
        sharding
        for value, sharding in zip(op.results, op.attrs["out_shardings"])
        if any(user.name not in _KEEPING for user in value.users())
    ]
    groups = [
        grouping(inner.attrs["replica_groups"], meshes).axes or ()
        for inner in _body(module, op)
        if inner.name in _JOINING
    ]
    dims = [axes for one in given or op.attrs["out_shardings"] for axes in one.dim_axes]
    return {axis.name for axes in (*dims, *groups) for axis in axes}


def _body(module: Module, op: Op) -> Iterator[Op]:
    """The ops in an op and in the functions that they call."""
    table, todo = SymbolTable(module.root), [op]
    seen: set[str] = set()
    while todo:
        for inner in walk(todo.pop()):
            yield inner
            name = inner.attrs.get("callee")
            if name is not None and name not in seen:
                seen.add(name)
                todo.append(table[name])


def _uneven(one: Uneven, now: Figures) -> Finding:
    value = one.one.value
    place = value.span.file, value.span.line, value.span.column
    size = value.shape[one.dim]
    what = (
        f"{value_text(one.one.name, value.function)} at {format_place(place)}: {one.axis!r} does not divide dimension "
        f"{one.dim} of {size}, which costs {format_bytes(round(one.bytes))} per device"
    )
    return Finding(FindingKind.UNEVEN, what, one.why, place, _padding(size, one.shards, one.axis), now, None)


def _uneven_weights(module: Module, mesh: Mesh) -> Iterator[tuple[Family, int, str, int]]:
    """The weights that are whole along an axis which splits others and does not divide their largest dimension.

    Each comes with the dimension, the axis and the size.
    """
    sizes = {axis: size for axis, size in mesh.axes if size > 1}
    known = [*families(module, sizes), *frozen(module, sizes)]
    used = {axis for family in known for axis in axes_of(family.members[0])}
    for family in known:
        shape = family.members[0].shape
        dim = max(range(len(shape)), key=lambda dim: shape[dim])
        for axis in [axis for axis in sizes if axis in used and axis not in axes_of(family.members[0])]:
            if shape[dim] % sizes[axis] and shape[dim] >= _LARGE * sizes[axis]:
                yield family, dim, axis, shape[dim]


def _uneven_weight(family: Family, dim: int, axis: str, size: int, shards: int, saved: int, now: Figures) -> Finding:
    what = (
        f"`{family.name}` is whole along {axis!r}, which splits other weights: its {shards} devices do not divide "
        f"dimension {dim} of {size}, which costs {format_bytes(saved)} per device"
    )
    why = "a spec with an axis that does not divide a dimension is refused, or left out by a helper that looks for that"
    return Finding(FindingKind.UNEVEN, what, why, None, _padding(size, shards, axis), now, None)


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
    largest = parts[0][0] if parts else ""
    cure = (
        "jax.checkpoint around a layer, which computes activations again instead of keeping them; or micro-batches"
        if largest == "activations"
        else "a mesh with more devices along the axes that split these, or another axis for them: pyshardy search"
    )
    return Finding(FindingKind.MEMORY, what, f"at the peak: {held}", None, cure, now, None)
