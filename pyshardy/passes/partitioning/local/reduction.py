"""`reduce` over dimensions that are sharded (partitioner spec, section 9.11)."""

from __future__ import annotations

from pyshardy.core.axes import Axes
from pyshardy.core.identities import identity_text
from pyshardy.core.sharding import ReductionKind, TensorSharding
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op, Value, clone_region_into
from pyshardy.passes.partitioning.builder import Builder
from pyshardy.passes.partitioning.local.checks import check_runs_locally
from pyshardy.passes.partitioning.local.collectives import leader
from pyshardy.passes.partitioning.local.groups import Collectives
from pyshardy.passes.partitioning.local.identity import identity_text as kind_identity
from pyshardy.passes.partitioning.local.localizer import Localizer
from pyshardy.passes.partitioning.local.pending import completed, is_completed_by, merged, wanted_kind
from pyshardy.passes.partitioning.reduction_kinds import body_kind, combiners

_ONCE = ("stablehlo.add", "stablehlo.multiply", "stablehlo.xor")
"""Combiners for which it matters how often the initial value counts."""
_CONSTANTS = ("stablehlo.constant", "sdy.constant")


def localize_reduce(op: Op, local: Localizer) -> None:
    """Every device reduces its shard; what is partial then is combined by the same body."""
    check_runs_locally(op, local)
    sharding = local.sharding(op.operands[0])
    axes: Axes = ()
    if sharding is not None and sharding.dims:
        axes = sum((sharding.dim_axes[dim] for dim in sorted(op.attrs["dimensions"])), ())
    if not axes or sharding is None:
        local.keep(op)
        return
    axes = merged(axes, sharding.mesh, local)
    neutral = _count_initial_values_once(op, axes, sharding, local)
    wanted = {wanted_kind(op, result, axes, sharding.mesh, local) for result in op.results}
    if len(wanted) > 1:
        raise PassError(op, "has results that are to be completed in different ways")
    (kind,) = wanted
    done = [result for result in op.results if is_completed_by(result, axes, local.mesh(sharding))]
    local.keep(op)
    if kind is not None and kind is body_kind(op):
        return
    builder = local.builder_after(op)
    if len(op.results) == 1:
        local.stand_in(op.result, completed(builder, op.result, axes, op.region, sharding.mesh, local))
    else:
        _reduce_again(op, builder, neutral, Collectives(local, builder, sharding.mesh), axes, local)
    if kind is not None:
        local.complete.update(done)
        for result in op.results:
            if result not in done:
                _make_partial(op, result, builder, leader(builder, axes, local.mesh(sharding)), kind, local)


def _make_partial(
    op: Op, result: Value, builder: Builder, is_first: Value, kind: ReductionKind, local: Localizer
) -> None:
    """Let a complete result be what completing it in a way that is not that of the body leaves as it is."""
    value = local.value(result)
    rest = builder.splat(kind_identity(op, kind, value.type), value.type)
    local.stand_in(result, builder.select(is_first, value, rest))


def _reduce_again(
    op: Op, builder: Builder, initial: list[Value], collectives: Collectives, axes: Axes, local: Localizer
) -> None:
    """Gather the partial results of all devices along a new dimension and reduce that."""
    gathered = []
    for result in op.results:
        shape = result.type.shape or ()
        gathered.append(collectives.all_gather(builder.reshape(result, (*shape, 1)), axes, len(shape)))
    attrs = {"dimensions": builder.array([op.results[0].type.rank])}
    again = builder.op("reduce", gathered + initial, [result.type for result in op.results], attrs, region_count=1)
    clone_region_into(op.region, again.region, {})
    for result, new in zip(op.results, again.results):
        local.stand_in(result, new)


def _count_initial_values_once(op: Op, axes: Axes, sharding: TensorSharding, local: Localizer) -> list[Value]:
    """Let only the first device of a group start with an initial value that changes the result.

    Returns:
        Per result, an initial value that may count again.
    """
    count = len(op.results)
    names = combiners(op)
    is_first = None
    builder, neutral = local.builder(op), []
    for index in range(count):
        initial = op.operands[count + index]
        neutral.append(local.value(initial))
        name = names[index] if names else None
        if name not in _ONCE:
            continue
        text = identity_text(name.removeprefix("stablehlo."), initial.type.element)
        if text is None or _is_constant(initial, text, local):
            continue
        if is_first is None:
            is_first = leader(builder, axes, local.mesh(sharding))
        rest = builder.splat(text, initial.type)
        neutral[index] = rest
        op.set_operand(count + index, builder.select(is_first, local.value(initial), rest))
    return neutral


def _is_constant(value: Value, text: str, local: Localizer) -> bool:
    """Whether a value is a constant of which all elements are the given one, or minus zero instead of zero."""
    op = value.defining_op
    if op is None or op.name not in _CONSTANTS:
        return False
    found = op.attrs["value"]
    texts = (text, f"-{text}") if text == "0.0" else (text,)
    return any(found == local.attrs.parse(f"dense<{one}> : {local.global_type(value)}") for one in texts)
