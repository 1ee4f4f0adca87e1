"""`gather` from a sharded tensor.

Source: docs/semantics/partitioner.md#gather
"""

from __future__ import annotations

from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import ReductionKind, TensorSharding
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op, Value
from pyshardy.transforms.builder import Builder
from pyshardy.transforms.local.bounds import (
    IndexedDim,
    lower_bound,
    per_component,
    upper_bound,
    wide_enough,
)
from pyshardy.transforms.local.checks import check_runs_locally
from pyshardy.transforms.local.groups import MeshRef
from pyshardy.transforms.local.identity import reduction_identity
from pyshardy.transforms.local.indexing import Numbers, gather_numbers
from pyshardy.transforms.local.localizer import Localizer
from pyshardy.transforms.local.partial_results import completed, in_mesh_order, stays_partial


def localize_gather(op: Op, local: Localizer) -> None:
    """Every device gathers from its shard, and has zeros for elements of other shards; an all-reduce sums them."""
    operand = op.operands[0]
    check_runs_locally(op, local)
    if not local.is_sharded(operand):
        local.keep(op)
        return
    numbers = gather_numbers(op)
    sizes = list(op.attrs["slice_sizes"])
    trivial = _divide(op, sizes, numbers, local)
    op.set_attr("slice_sizes", local.attrs.i64_array(tuple(sizes)))
    if "indices_are_sorted" not in op.attrs:
        op.set_attr("indices_are_sorted", local.attrs.parse("false"))
    if not trivial:
        local.keep(op)
        return
    sharding = local.sharding(operand)
    assert sharding is not None
    axes = in_mesh_order(sum((sharding.dim_axes[dim] for dim in trivial), ()), sharding.mesh, local)
    kind = _kind(local.sharding(op.result))
    is_partial = stays_partial(op, op.result, axes, kind, sharding.mesh, local)
    mask = _restrict_indices(op, local, numbers, trivial, sharding)
    local.keep(op)
    builder = local.builder_after(op)
    value = _masked(op, builder, mask, numbers, kind)
    if not is_partial:
        value = completed(op, builder, value, axes, kind, sharding.mesh, local)
    local.stand_in(op.result, value)


def _divide(op: Op, sizes: list[int], numbers: Numbers, local: Localizer) -> list[int]:
    """Make the slice sizes local; return the sharded dimensions along which single elements are taken."""
    operand = op.operands[0]
    shape, counts = local.global_shape(operand), local.shard_counts(operand)
    trivial = []
    for dim, count in enumerate(counts):
        if count == 1 or dim in numbers.input_batching:
            continue
        if sizes[dim] == 1:
            trivial.append(dim)
        elif sizes[dim] != shape[dim]:
            raise PassError(
                op,
                f"takes {sizes[dim]} of {shape[dim]} elements along dimension {dim} of its operand, which is sharded; "
                "needed one element or all",
            )
        else:
            sizes[dim] //= count
    return trivial


def _restrict_indices(
    op: Op, local: Localizer, numbers: Numbers, trivial: list[int], sharding: TensorSharding
) -> Value:
    """Make the indices relative to the shard; return a mask of those inside it.

    The mask has the shape of the indices. It is a scalar if all slices are in the same shard.
    """
    operand, indices = op.operands
    builder, mesh = local.builder(op), local.mesh(sharding)
    shape = local.value(operand).type.shape or ()
    mask = None
    if any(dim in numbers.indexed for dim in trivial):
        whole = local.global_shape(operand)
        sizes = [whole[dim] if dim in trivial else shape[dim] for dim in numbers.indexed]
        given = wide_enough(builder, local.value(indices), max(sizes))
        given = _clamped(builder, given, sizes, numbers.vector_dim)
        dims = [IndexedDim(sharding.dim_axes[dim] if dim in trivial else (), shape[dim]) for dim in numbers.indexed]
        local_indices, mask = _relative(builder, given, dims, mesh, numbers.vector_dim, sharding.mesh)
        op.set_operand(1, local_indices)
    rest = [dim for dim in trivial if dim not in numbers.indexed]
    if rest:
        mask = _only_first(builder, rest, sharding, shape, mesh, local.value(indices), mask)
    assert mask is not None
    return mask


def _clamped(builder: Builder, indices: Value, sizes: list[int], vector_dim: int) -> Value:
    """The indices, clamped to the bounds of the tensor: the global one along restricted dimensions, else the shard."""
    type = indices.type
    zero = builder.splat("0", type)
    if len(sizes) == 1:
        last = builder.splat(str(sizes[0] - 1), type)
    else:
        table = builder.table([size - 1 for size in sizes], type.element)
        last = builder.broadcast(table, type.shape or (), [vector_dim])
    return builder.value("clamp", [zero, indices, last], type)


def _relative(
    builder: Builder, indices: Value, dims: list[IndexedDim], mesh: Mesh, vector_dim: int, ref: MeshRef
) -> tuple[Value, Value]:
    """The indices relative to the shard, and a mask of those inside it."""
    element, shape = indices.type.element, indices.type.shape or ()
    bounds = []
    for dim in dims:
        lower = lower_bound(builder, dim, mesh, element)
        bounds.append((lower, upper_bound(builder, dim, lower)))
    lower, upper = (per_component(builder, [pair[side] for pair in bounds], shape, vector_dim, ref) for side in (0, 1))
    relative = builder.combine("subtract", indices, lower)
    above, below = builder.compare("GE", indices, lower), builder.compare("LE", indices, upper)
    return relative, builder.combine("and", above, below)


def _only_first(
    builder: Builder,
    dims: list[int],
    sharding: TensorSharding,
    shape: tuple[int, ...],
    mesh: Mesh,
    indices: Value,
    mask: Value | None,
) -> Value:
    """Whether a device has the first shard of the dimensions without an index: a scalar, or the mask with it."""
    found = None
    for dim in dims:
        offset = builder.dim_offset(sharding.dim_axes[dim], mesh, shape[dim])
        is_first = builder.compare("EQ", offset, builder.splat("0", offset.type))
        found = is_first if found is None else builder.combine("and", found, is_first)
    assert found is not None
    if mask is None:
        return found
    return builder.combine("and", mask, builder.broadcast(found, indices.type.shape or ()))


def _masked(op: Op, builder: Builder, mask: Value, numbers: Numbers, kind: ReductionKind) -> Value:
    """The gathered elements where the mask is set, and zeros elsewhere."""
    type, mask_shape = op.result.type, mask.type.shape or ()
    if numbers.vector_dim < len(mask_shape):
        true = builder.splat("true", builder.type((), "i1"))
        shape = [size for dim, size in enumerate(mask_shape) if dim != numbers.vector_dim]
        attrs = {"dimensions": builder.array([numbers.vector_dim])}
        reduced = builder.op("reduce", [mask, true], [builder.type(shape, "i1")], attrs, region_count=1)
        builder.body(reduced, [true.type] * 2, lambda inner, args: [inner.combine("and", *args)])
        mask = reduced.result
    batch = [dim for dim in range(type.rank) if mask.type.rank and dim not in numbers.window]
    spread = builder.broadcast(mask, type.shape or (), batch)
    return builder.select(spread, op.result, builder.splat(reduction_identity(op, kind, type), type))


def _kind(sharding: TensorSharding | None) -> ReductionKind:
    return sharding.reduction if sharding is not None and sharding.unreduced else ReductionKind.SUM
