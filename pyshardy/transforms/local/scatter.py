"""`scatter` with sharded inputs or updates.

Source: docs/semantics/partitioner.md#scatter
"""

from __future__ import annotations

from pyshardy.core.axes import Axes
from pyshardy.core.identities import identity_text
from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op, Region, Value, ValueType
from pyshardy.transforms.builder import Builder
from pyshardy.transforms.local.bounds import IndexedDim, lower_bound, per_component, wide_enough
from pyshardy.transforms.local.checks import check_runs_locally
from pyshardy.transforms.local.collectives import leader
from pyshardy.transforms.local.groups import Collectives, is_all_reduced
from pyshardy.transforms.local.indexing import Numbers, index_more, scatter_numbers
from pyshardy.transforms.local.localizer import Localizer
from pyshardy.transforms.local.partial_results import in_mesh_order, stays_partial
from pyshardy.transforms.reduction_kinds import body_kind, combiners


def localize_scatter(op: Op, local: Localizer) -> None:
    """Every device applies its updates to its shard of the inputs; indices of other shards are out of bounds."""
    check_runs_locally(op, local)
    count = len(op.results)
    first, update = op.operands[0], op.operands[count + 1]
    if not local.is_sharded(first) and not local.is_sharded(update):
        local.keep(op)
        return
    numbers = _with_inserted_indexed(op, local, scatter_numbers(op))
    reduced = _reduced_axes(local, numbers, first, update)
    sharding = local.sharding(first) or local.sharding(update)
    assert sharding is not None
    reduced = in_mesh_order(reduced, sharding.mesh, local)
    indexed = _indexed_dims(op, local, numbers)
    is_partial = True
    if reduced:
        names = _combiners(op)
        kinds = {stays_partial(op, result, reduced, body_kind(op), sharding.mesh, local) for result in op.results}
        if len(kinds) > 1:
            raise PassError(op, "has results of which only some stay partial")
        (is_partial,) = kinds
        _start_from_identity(op, local, names, reduced, sharding)
    if indexed:
        _shift_indices(op, local, numbers, indexed, sharding, first)
    if reduced or indexed:
        for name in ("indices_are_sorted", "unique_indices"):
            if name not in op.attrs:
                op.set_attr(name, local.attrs.parse("false"))
    local.keep(op)
    if not is_partial:
        _complete(op, local, reduced, sharding)


def _reduced_axes(local: Localizer, numbers: Numbers, first: Value, update: Value) -> Axes:
    """The axes that shard the updates but not the inputs."""
    used = sum(local.dim_axes(first), ())
    dims = [axes for dim, axes in enumerate(local.dim_axes(update)) if dim not in numbers.window]
    return tuple(axis for axes in dims for axis in axes if not any(axis.overlaps(other) for other in used))


def _combiners(op: Op) -> tuple[str, ...]:
    names = combiners(op)
    if names is None:
        raise PassError(
            op,
            "has updates that are sharded and combines them with the old values by more than one op; "
            "replicate the updates by a reshard first",
        )
    return names


def _start_from_identity(
    op: Op, local: Localizer, names: tuple[str, ...], axes: Axes, sharding: TensorSharding
) -> None:
    """Let only the first device of a group start from the inputs, and the others from the identity."""
    builder, is_first = local.builder(op), None
    made: dict[tuple[str, ValueType], Value] = {}
    for index, name in enumerate(names):
        given = local.value(op.operands[index])
        key = name, given.type
        if key not in made:
            made[key] = _identity(op, builder, name, given.type)
        if is_first is None:
            is_first = leader(builder, axes, local.mesh(sharding))
        op.set_operand(index, builder.select(is_first, given, made[key]))


def _identity(op: Op, builder: Builder, name: str, type: ValueType) -> Value:
    text = identity_text(name, type.element)
    if text is None:
        raise PassError(op, f"has updates that are sharded and combines them by {name}, which has no identity value")
    return builder.broadcast(builder.splat(text, builder.like((), type)), type.shape or ())


def _with_inserted_indexed(op: Op, local: Localizer, numbers: Numbers) -> Numbers:
    """Give indices a zero component for every sharded dimension that is neither a window dimension nor indexed."""
    split = local.dim_axes(op.operands[0])
    missing = tuple(dim for dim in numbers.dropped if split[dim] and dim not in numbers.indexed)
    if not missing:
        return numbers
    builder, place = local.builder(op), len(op.results)
    indices = local.value(op.operands[place])
    shape = [*(indices.type.shape or ())]
    if numbers.vector_dim == len(shape):
        shape.append(1)
        indices = builder.reshape(indices, shape)
    shape[numbers.vector_dim] = len(missing)
    zeros = builder.splat("0", builder.like(shape, indices.type))
    op.set_operand(place, builder.concatenate([indices, zeros], numbers.vector_dim))
    indexed = numbers.indexed + missing
    index_more(op, indexed)
    return numbers._replace(indexed=indexed)


def _indexed_dims(op: Op, local: Localizer, numbers: Numbers) -> dict[int, Axes]:
    """The indexed and sharded dimensions of the input, with their axes."""
    first = op.operands[0]
    found = {}
    for dim, axes in enumerate(local.dim_axes(first)):
        if axes and dim in numbers.indexed and not _is_whole(op, dim, local, numbers):
            found[dim] = axes
    return found


def _is_whole(op: Op, dim: int, local: Localizer, numbers: Numbers) -> bool:
    """Whether windows cover a dimension; windows that may overlap several shards are refused."""
    if dim in numbers.dropped:
        return False
    shape, update = local.global_shape(op.operands[0]), op.operands[len(op.results) + 1]
    gone = numbers.dropped + numbers.input_batching
    kept = [other for other in range(len(shape)) if other not in gone]
    size = local.global_shape(update)[numbers.window[kept.index(dim)]]
    if size not in (1, shape[dim]):
        raise PassError(
            op,
            f"updates {size} elements along dimension {dim} of its input, which is sharded; needed one element or all",
        )
    return size == shape[dim]


def _shift_indices(
    op: Op, local: Localizer, numbers: Numbers, indexed: dict[int, Axes], sharding: TensorSharding, first: Value
) -> None:
    """Make the indices relative to the shard."""
    builder, mesh = local.builder(op), local.mesh(sharding)
    shape, indices = local.local_type_of(op, first).shape or (), op.operands[len(op.results)]
    given = wide_enough(builder, local.value(indices), max(local.global_shape(first)[dim] for dim in indexed))
    dims = [IndexedDim(indexed.get(dim, ()), shape[dim]) for dim in numbers.indexed]
    bounds = [lower_bound(builder, dim, mesh, given.type.element) for dim in dims]
    lower = per_component(builder, bounds, given.type.shape or (), numbers.vector_dim, sharding.mesh)
    op.set_operand(len(op.results), builder.combine("subtract", given, lower))


def _complete(op: Op, local: Localizer, axes: Axes, sharding: TensorSharding) -> None:
    """All-reduce every result."""
    builder = local.builder_after(op)
    collectives = Collectives(local, builder, sharding.mesh, op)
    names = _combiners(op)
    elements = [result.type.element for result in op.results]
    if not all(map(is_all_reduced, names, elements)):
        identities = [_identity(op, builder, name, builder.type((), element)) for name, element in zip(names, elements)]
        for result, new in zip(op.results, collectives.reduce_all(op.results, axes, identities, op.region)):
            local.stand_in(result, new)
        return
    for name, result in zip(names, op.results):
        combine: Region | str = op.region if len(op.results) == 1 else name
        local.stand_in(result, collectives.all_reduce(result, axes, combine, result.index))
