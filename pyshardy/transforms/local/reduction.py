"""`reduce` over sharded dimensions.

Source: docs/semantics/partitioner.md#reduce
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import join_axes
from pyshardy.core.sharding import ReductionKind, TensorSharding
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op, Value
from pyshardy.transforms.builder import Builder
from pyshardy.transforms.local.checks import check_runs_locally
from pyshardy.transforms.local.collectives import leader
from pyshardy.transforms.local.groups import Collectives, is_all_reduced
from pyshardy.transforms.local.identity import reduction_identity as kind_identity
from pyshardy.transforms.local.localizer import Localizer
from pyshardy.transforms.local.partial_results import in_mesh_order, is_completed_by, wanted_kind
from pyshardy.transforms.reduction_kinds import combiners, neutral_text, plain_kind
from pyshardy.transforms.reshards.kinds import kind_of


def localize_reduce(op: Op, local: Localizer) -> None:
    """Every device reduces its shard; collectives with the same body combine the partial results."""
    op_kind = kind_of(op, local.global_types)
    if local.keep_like_others(op, op_kind):
        return
    check_runs_locally(op, local)
    sharding = local.sharding(op.operands[0])
    if sharding is None or not (ordered := _axes_in_order(op, sharding, local)):
        local.keep_for_kind(op, op_kind)
        return
    axes = in_mesh_order(ordered, sharding.mesh, local)
    starts = _take_out_initial_values(op, local)
    wanted = {wanted_kind(op, result, axes, sharding.mesh, local) for result in op.results}
    if len(wanted) > 1:
        raise PassError(op, "has partial results that combine in different ways")
    (kind,) = wanted
    done = [result for result in op.results if is_completed_by(result, axes, local.mesh(sharding))]
    local.keep(op)
    builder = local.builder_after(op)
    parts = _with_initial_values(op, starts, builder, axes, sharding, local)
    if kind is None or kind is not plain_kind(op):
        collectives = Collectives(local, builder, sharding.mesh, op)
        if len(parts) == 1 and is_all_reduced(_names(op)[0], parts[0].type.element):
            parts = [collectives.all_reduce(parts[0], axes, op.region)]
        else:
            parts = collectives.reduce_all(parts, ordered, [start.neutral for start in starts], op.region)
    for result, part in zip(op.results, parts):
        if part is not result:
            local.stand_in(result, part)
    if kind is not None and kind is not plain_kind(op):
        local.complete.update(done)
        for result in op.results:
            if result not in done:
                _make_partial(op, result, builder, leader(builder, axes, local.mesh(sharding)), kind, local)


def _axes_in_order(op: Op, sharding: TensorSharding, local: Localizer) -> Axes:
    """The axes of the reduced dimensions, in the order of the shards: a body need not be commutative."""
    dims = sorted(op.attrs["dimensions"]) if sharding.dims else ()
    return join_axes((sharding.dim_axes[dim] for dim in dims), local.mesh(sharding))


def _make_partial(
    op: Op, result: Value, builder: Builder, is_first: Value, kind: ReductionKind, local: Localizer
) -> None:
    """Keep a complete result on one device, with the identity elsewhere, because a later all-reduce combines them."""
    value = local.value(result)
    rest = builder.splat(kind_identity(op, kind, value.type), value.type)
    local.stand_in(result, builder.select(is_first, value, rest))


class _Start(NamedTuple):
    """The initial value of the reduction of one operand.

    Attributes:
        neutral: An initial value that may be combined any number of times.
        late: The original initial value, if it is combined with the reduced value afterwards.
    """

    neutral: Value
    late: Value | None = None


def _names(op: Op) -> Sequence[str | None]:
    return combiners(op) or (None,) * len(op.results)


def _take_out_initial_values(op: Op, local: Localizer) -> list[_Start]:
    """Start a reduction from the identity if its initial value must count only once or might get lost.

    XLA assumes that initial values are identities, and omits them if there is only one element to reduce.
    """
    count = len(op.results)
    shape = local.local_type_of(op, op.operands[0]).shape or ()
    is_single = prod(shape[dim] for dim in op.attrs["dimensions"]) == 1
    starts = []
    for index, name in enumerate(_names(op)):
        initial = op.operands[count + index]
        text = neutral_text(name, initial, local.attrs, only_counted=not is_single)
        value = local.value(initial)
        if text is None:
            starts.append(_Start(value))
        else:
            starts.append(_Start(local.builder(op).splat(text, initial.type), value))
            op.set_operand(count + index, starts[-1].neutral)
    return starts


def _with_initial_values(
    op: Op, starts: list[_Start], builder: Builder, axes: Axes, sharding: TensorSharding, local: Localizer
) -> list[Value]:
    """The values that every device has reduced; the first device of a group combines the original initial values."""
    is_first = None
    parts: list[Value] = []
    for name, start, result in zip(_names(op), starts, op.results):
        if start.late is None or name is None:
            parts.append(result)
            continue
        if is_first is None:
            is_first = leader(builder, axes, local.mesh(sharding))
        once = builder.select(is_first, start.late, start.neutral)
        parts.append(builder.combine(name, builder.broadcast(once, result.type.shape or ()), result))
    return parts
