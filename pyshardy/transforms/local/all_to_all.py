"""Lowers `sdy.all_to_all` to `stablehlo.all_to_all`.

Source: docs/semantics/partitioner.md#collectives
"""

from __future__ import annotations

from collections.abc import Sequence

from pyshardy.core.axis_lists import axes_size, join_axes
from pyshardy.core.collectives import AllToAllParam
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op, Value
from pyshardy.transforms.local.groups import Collectives
from pyshardy.transforms.local.localizer import Localizer
from pyshardy.transforms.rewriting.all_to_all import read_params


def lower_all_to_all(op: Op, local: Localizer) -> None:
    """One all-to-all, even if axes move between several pairs of dimensions."""
    params = read_params(op)
    value = local.value(op.operands[0])
    collectives = Collectives(local, local.builder(op), op.attrs["out_sharding"].mesh)
    shape = value.type.shape or ()
    for param in params:
        size = axes_size(param.axes, collectives.mesh)
        if shape[param.target] < 0 or shape[param.target] % size:
            raise PassError(op, f"splits dimension {param.target} of {value.type} into {size} parts of equal size")
    if len(params) == 1:
        (param,) = params
        value = collectives.all_to_all(value, param.axes, param.target, param.source)
    else:
        value = _exchange_at_once(collectives, value, sorted(params, key=lambda param: param.target))
    local.replace(op, [value])


def _exchange_at_once(collectives: Collectives, value: Value, params: Sequence[AllToAllParam]) -> Value:
    """Split every target into a factor and a rest, exchange all factors as one dimension, and move them back."""
    builder, shape = collectives.builder, value.type.shape or ()
    factors = {param.target: axes_size(param.axes, collectives.mesh) for param in params}
    split: list[int] = []
    place: dict[int, int] = {}
    """The position of a dimension, without its factor, in the split shape."""
    for dim, size in enumerate(shape):
        if dim in factors:
            split.append(factors[dim])
        place[dim] = len(split)
        split.append(size // factors.get(dim, 1))
    front = [place[param.target] - 1 for param in params]
    value = builder.reshape(value, split)
    order = front + [index for index in range(len(split)) if index not in front]
    value = builder.transpose(value, order)
    moved = value.type.shape or ()
    axes = join_axes((param.axes for param in params), collectives.mesh)
    value = builder.reshape(value, (axes_size(axes, collectives.mesh), *moved[len(front) :]))
    value = builder.reshape(collectives.all_to_all(value, axes, 0, 0), moved)
    back: list[int] = []
    sizes: list[int] = []
    for dim, size in enumerate(shape):
        sizes.append(size // factors.get(dim, 1))
        for index, param in enumerate(params):
            if param.source == dim:
                back.append(index)
                sizes[-1] *= factors[param.target]
        back.append(order.index(place[dim]))
    return builder.reshape(builder.transpose(value, back), sizes)
