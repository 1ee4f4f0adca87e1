"""`pyshardy-known-indices`: uses what is known of the indices of gathers and scatters, so that less is sent.

Source: docs/semantics/partitioner.md#known-indices
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.ir.constants import constant_integer
from pyshardy.ir.dialects import stablehlo
from pyshardy.ir.functions import RULE, SHARDING
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import get_sharding, set_sharding
from pyshardy.passes.base import Anchor, Pass
from pyshardy.transforms.builder import Builder
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.local.indexing import Numbers, gather_numbers, scatter_numbers
from pyshardy.transforms.reshards.op_rules import rule_with_dynamic_sizes
from pyshardy.transforms.row_numbers import is_row_number

_GATHER, _SCATTER = "stablehlo.gather", "stablehlo.scatter"


class KnownIndices(Pass):
    """Keep gathers and scatters on their devices if the program shows which rows they take.

    A component of the indices may be the number of the row, as in `x[jnp.arange(n), i]`. If that dimension of the
    tensor is sharded, it becomes a batching dimension. A scatter may set one window at a known place along a sharded
    dimension, as in `x.at[3:5].set(y)`. It becomes an update of a slice.
    """

    name = "pyshardy-known-indices"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        for inner in ops_named(op, (_GATHER, _SCATTER)):
            sharding = get_sharding(inner.operands[0])
            if sharding is None or sharding.is_fully_replicated:
                continue
            sharded = {dim for dim, axes in enumerate(sharding.dim_axes) if axes}
            if inner.name == _SCATTER and _as_update(inner, sharded, context):
                continue
            while _with_batching(inner, sharded, context):
                pass


def _with_batching(op: Op, sharded: set[int], context: PassContext) -> bool:
    """Make a batching dimension of one component of the indices that is the number of the row."""
    place = 1 if op.name == _GATHER else len(op.results)
    numbers = gather_numbers(op) if op.name == _GATHER else scatter_numbers(op)
    indices = op.operands[place]
    joined, shape = indices.defining_op, indices.type.shape or ()
    if (
        joined is None
        or joined.name != "stablehlo.concatenate"
        or joined.attrs["dimension"].value != numbers.vector_dim
        or len(joined.operands) != len(numbers.indexed)
        or len(numbers.indexed) < 2
    ):
        return False
    sizes, batched = op.operands[0].type.shape or (), _index_batching(op)
    for component, dim in enumerate(numbers.indexed):
        if dim not in sharded or dim not in numbers.dropped:
            continue
        rows = [row for row in range(len(shape)) if row != numbers.vector_dim and row not in batched]
        row = next((row for row in rows if shape[row] == sizes[dim]), None)
        if row is None or not is_row_number(joined.operands[component], row):
            continue
        left = [value for number, value in enumerate(joined.operands) if number != component]
        op.set_operand(place, _joined(left, joined, numbers.vector_dim, op, context))
        _set_numbers(op, numbers, component, row)
        if RULE in op.attrs:
            op.set_attr(RULE, rule_with_dynamic_sizes(context.specs.spec(op)))
        return True
    return False


def _joined(values: Sequence[Value], joined: Op, dim: int, op: Op, context: PassContext) -> Value:
    """The components of the indices that are left."""
    if len(values) == 1:
        return values[0]
    sharding = get_sharding(joined.result)
    builder = Builder(context.attrs, op, joined.place, sharding)
    return builder.concatenate(list(values), dim)


def _index_batching(op: Op) -> tuple[int, ...]:
    if op.name == _GATHER:
        return tuple(stablehlo.GatherDimensionNumbers(op.attrs["dimension_numbers"]).start_indices_batching_dims)
    found = stablehlo.ScatterDimensionNumbers(op.attrs["scatter_dimension_numbers"])
    return tuple(found.scatter_indices_batching_dims)


def _set_numbers(op: Op, numbers: Numbers, component: int, row: int) -> None:
    """The dimension numbers with a batching dimension in place of a component."""
    dim = numbers.indexed[component]
    pairs = sorted([*zip(numbers.input_batching, _index_batching(op)), (dim, row)])
    fields = (
        list(numbers.window),
        [other for other in numbers.dropped if other != dim],
        [given for given, _ in pairs],
        [given for _, given in pairs],
        [other for number, other in enumerate(numbers.indexed) if number != component],
        numbers.vector_dim,
    )
    name = "dimension_numbers" if op.name == _GATHER else "scatter_dimension_numbers"
    kind: Any = stablehlo.GatherDimensionNumbers if op.name == _GATHER else stablehlo.ScatterDimensionNumbers
    op.set_attr(name, kind.get(*fields, op.attrs[name].context))


def _as_update(op: Op, sharded: set[int], context: PassContext) -> bool:
    """Replace a scatter of one window at a known place by an update of a slice; return whether it was replaced."""
    if len(op.results) != 1 or not _sets(op):
        return False
    given, indices, update = op.operands
    numbers = scatter_numbers(op)
    start = constant_integer(indices)
    sizes = given.type.shape or ()
    if start is None or not update.type.is_static or numbers.input_batching or indices.type.rank > 1:
        return False
    window = list(update.type.shape or ())
    sharding = get_sharding(update)
    dims = [] if sharding is None else list(sharding.dims)
    for dim in numbers.dropped:
        window.insert(dim, 1)
        dims.insert(dim, DimSharding((), False))
    starts = [start if dim in numbers.indexed else 0 for dim in range(len(sizes))]
    if any(at < 0 or at + length > size for at, length, size in zip(starts, window, sizes)):
        return False  # a scatter leaves such a window out
    if not any(window[dim] not in (1, sizes[dim]) for dim in sharded):
        return False
    builder = Builder(context.attrs, op, op.place)
    if numbers.dropped:
        update = builder.reshape(update, window)
        if sharding is not None:
            set_sharding(update, TensorSharding(sharding.mesh, dims))
    type = builder.type((), indices.type.element)
    places = [builder.splat(str(at), type) for at in starts]
    made = builder.op("dynamic_update_slice", [given, update, *places], [op.result.type])
    if SHARDING in op.attrs:
        made.set_attr(SHARDING, op.attrs[SHARDING])
    op.result.replace_uses(made.result)
    op.erase()
    return True


def _sets(op: Op) -> bool:
    """Whether a scatter replaces what is there."""
    block = op.region.block
    return list(block.terminator.operands) == [block.args[1]]
