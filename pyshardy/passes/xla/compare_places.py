"""`pyshardy-compare-places`: replaces a scatter with one update per row, as XLA for TPUs does before propagation."""

from __future__ import annotations

from collections.abc import Iterator

from pyshardy.ir.constants import splat_of
from pyshardy.ir.functions import functions, is_declaration
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.op_lists import ops_named
from pyshardy.passes.base import Pass
from pyshardy.transforms.builder import Builder
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.local.indexing import Numbers, scatter_numbers
from pyshardy.transforms.reduction_kinds import combiners

_SCATTER = "stablehlo.scatter"
_BROADCAST = "stablehlo.broadcast_in_dim"
_ADD = "stablehlo.add"


class ComparePlaces(Pass):
    """Replace scatters with one update per row by a comparison of every place with the index of its row.

    So XLA for TPUs makes the gradient of `jnp.take_along_axis` with one index per row, as in a cross-entropy. The
    scatter, through which few dimensions propagate, then consists of element-wise ops.
    """

    name = "pyshardy-compare-places"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        for found in list(compared_scatters(op)):
            _compare(found, context)


def compared_scatters(root: Op) -> Iterator[Op]:
    """The scatters of a program that XLA for TPUs replaces."""
    for function in functions(root):
        if not is_declaration(function):
            for found in ops_named(function, (_SCATTER,)):
                is_single = len(found.results) == 1 and _has_one_per_row(found, scatter_numbers(found))
                if is_single and (_overwrites(found) or _combiner(found) is not None):
                    yield found


def _has_one_per_row(op: Op, numbers: Numbers) -> bool:
    """Whether updates have the shape of the target, but for one element along the indexed dimension.

    All other dimensions are batching ones. If updates lack the dimension of one element, the op stays a scatter, as in
    XLA. So it does if the type of the indices is too small to count the places.
    """
    target, indices, updates = (operand.type for operand in op.operands)
    if numbers.window or len(numbers.dropped) != 1 or numbers.indexed != numbers.dropped or target.shape is None:
        return False
    (dim,) = numbers.dropped
    if target.shape[dim] > 1 << (int(indices.element.lstrip("ui")) - 1):
        return False
    others = tuple(other for other in range(target.rank) if other != dim)
    return numbers.input_batching == others and updates.shape == (*target.shape[:dim], 1, *target.shape[dim + 1 :])


def _compare(op: Op, context: PassContext) -> None:
    target, indices, updates = op.operands
    (dim,), shape = scatter_numbers(op).dropped, target.type.shape or ()
    rows = [size for other, size in enumerate(shape) if other != dim]
    dims = [other for other in range(len(shape)) if other != dim]
    builder = Builder(context.attrs, op, op.place)
    index, update = (builder.broadcast(builder.reshape(value, rows), shape, dims) for value in (indices, updates))
    is_there = builder.compare("EQ", index, builder.iota(index.type, dim))
    op.result.replace_uses(builder.select(is_there, _combined(op, target, update, builder), target))
    op.erase()


def _combined(op: Op, target: Value, update: Value, builder: Builder) -> Value:
    """What a scatter makes of elements and their updates; a sum with zeros is the update."""
    if _overwrites(op):
        return update
    inner = _combiner(op)
    assert inner is not None
    if inner.name == _ADD and _is_zero(target):
        return update
    values = dict(zip(op.regions[0].blocks[0].args, (target, update)))
    return builder.combine(inner.name.removeprefix("stablehlo."), *(values[value] for value in inner.operands))


def _combiner(op: Op) -> Op | None:
    """The op that combines an element and its update; None if the body does anything else."""
    inner = op.regions[0].blocks[0].terminator.operands[0].defining_op
    return None if inner is None or inner.attrs or combiners(op) is None else inner


def _overwrites(op: Op) -> bool:
    """Whether a scatter replaces elements by their updates."""
    block = op.regions[0].blocks[0]
    return block.terminator.operands[0] is block.args[1]


def _is_zero(value: Value) -> bool:
    """Whether all elements are zero, as far as can be seen."""
    op = value.defining_op
    while op is not None and op.name == _BROADCAST:
        value = op.operands[0]
        op = value.defining_op
    return bool(splat_of(value) == 0)
