"""`sdy-explicit-gather-scatter-batching`: makes the first dimension a batching dimension if row i has index i.

Source: docs/semantics/import.md#sdy-explicit-gather-scatter-batching
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from pyshardy.ir.dialects import stablehlo
from pyshardy.ir.nodes import Op, Value, ValueType
from pyshardy.passes.base import Anchor, Pass
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.rewriting.greedy import GreedyDriver, Rewriter

_CONCATENATE = "stablehlo.concatenate"
_IOTA = "stablehlo.iota"
_SEEN_THROUGH = {"stablehlo.reshape": 0, "stablehlo.broadcast_in_dim": 0, "stablehlo.clamp": 1}
"""Ops that this pass looks through, each with the number of the operand to look at instead."""


class ExplicitGatherScatterBatching(Pass):
    """Make the first dimension of a gather or scatter a batching dimension if row i has i as an index component.

    The component must come from an iota. The pass also removes dead ops and merges equal constants.
    """

    name = "sdy-explicit-gather-scatter-batching"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        patterns = {kind.name: [kind.rewrite] for kind in (_GATHER, _SCATTER)}
        GreedyDriver(patterns, context.attrs, top_down=False).run(op)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A gather or a scatter, and the names of its dimension numbers.

    Attributes:
        name: The op.
        attribute: The attribute with the dimension numbers.
        numbers: The class of that attribute.
        window: Its field for the dimensions of windows.
        dropped: Its field for the dimensions that windows lack.
        batching: Its field for the batching dimensions of the input.
        index_batching: Its field for the batching dimensions of the indices.
        index_map: Its field for the dimensions that the components of an index refer to.
        flags: The attributes to write even if they are false.
    """

    name: str
    attribute: str
    numbers: Any
    window: str
    dropped: str
    batching: str
    index_batching: str
    index_map: str
    flags: tuple[str, ...]

    def rewrite(self, op: Op, rewriter: Rewriter) -> bool:
        """Replace an op whose row i has index i in the first dimension; return whether the op was replaced."""
        numbers = self.numbers(op.attrs[self.attribute])
        place = 1 if self is _GATHER else len(op.operands) // 2
        indices = op.operands[place]
        index_map, dropped = list(getattr(numbers, self.index_map)), list(getattr(numbers, self.dropped))
        vector = numbers.index_vector_dim
        if (
            getattr(numbers, self.batching)
            or not _are_paired(op.operands[0].type.shape, indices.type.shape, vector)
            or 0 not in index_map
            or 0 not in dropped
            or not _is_row_number(indices, vector, index_map.index(0))
        ):
            return False
        rest = _without_component(indices, vector, index_map.index(0), op, rewriter)
        dropped.remove(0)
        index_map.remove(0)
        fields = {
            self.window: list(getattr(numbers, self.window)),
            self.dropped: dropped,
            self.batching: [0],
            self.index_batching: [0],
            self.index_map: index_map,
            "index_vector_dim": vector,
        }
        attrs = {**op.attrs, self.attribute: self.numbers.get(**fields)}
        for flag in self.flags:
            attrs.setdefault(flag, rewriter.attrs.parse("false"))
        operands = [*op.operands[:place], rest, *op.operands[place + 1 :]]
        types = [result.type for result in op.results]
        _replace(op, Op(op.name, operands, types, attrs, len(op.regions), op.place), rewriter)
        return True


_GATHER = _Kind(
    "stablehlo.gather",
    "dimension_numbers",
    stablehlo.GatherDimensionNumbers,
    "offset_dims",
    "collapsed_slice_dims",
    "operand_batching_dims",
    "start_indices_batching_dims",
    "start_index_map",
    ("indices_are_sorted",),
)
_SCATTER = _Kind(
    "stablehlo.scatter",
    "scatter_dimension_numbers",
    stablehlo.ScatterDimensionNumbers,
    "update_window_dims",
    "inserted_window_dims",
    "input_batching_dims",
    "scatter_indices_batching_dims",
    "scattered_dims_to_operand_dims",
    ("indices_are_sorted", "unique_indices"),
)


def _are_paired(given: tuple[int, ...] | None, indices: tuple[int, ...] | None, vector: int) -> bool:
    """Whether input and indices have the same first size, and indices have several components."""
    return bool(given and indices and given[0] == indices[0] and vector < len(indices) and indices[vector] > 1)


def _is_row_number(indices: Value, vector: int, component: int) -> bool:
    """Whether a component of the indices is an iota along the rows."""
    value, op = indices, indices.defining_op
    if op is not None and op.name == _CONCATENATE:
        if op.attrs["dimension"].value != vector or component >= len(op.operands):
            return False
        value = op.operands[component]
    return _comes_from_iota(value)


def _comes_from_iota(value: Value) -> bool:
    op = value.defining_op
    while op is not None and op.name != _IOTA:
        if op.name in _SEEN_THROUGH:
            op = op.operands[_SEEN_THROUGH[op.name]].defining_op
        elif op.name == "stablehlo.select":
            _, on_true, on_false = [operand.defining_op for operand in op.operands]
            op = on_false if on_false is not None and on_false.name == _IOTA else on_true
        else:
            return False
    return op is not None and op.attrs["iota_dimension"].value == 0


def _without_component(indices: Value, vector: int, component: int, op: Op, rewriter: Rewriter) -> Value:
    """The indices without one component. The ops that remove it are inserted before `op`."""
    joined, count = indices.defining_op, (indices.type.shape or ())[vector]
    if joined is not None and joined.name == _CONCATENATE and len(joined.operands) == count:
        kept = [value for index, value in enumerate(joined.operands) if index != component]
        return _join(kept, vector, op, rewriter)
    return _join(list(_slices(indices, vector, component, op, rewriter)), vector, op, rewriter)


def _slices(indices: Value, vector: int, component: int, op: Op, rewriter: Rewriter) -> Iterator[Value]:
    """The non-empty parts before and after a component."""
    shape = indices.type.shape
    assert shape is not None
    for first, end in ((0, component), (component + 1, shape[vector])):
        if first < end:
            start, limit = [0] * len(shape), list(shape)
            start[vector], limit[vector] = first, end
            attrs = {
                "start_indices": start,
                "limit_indices": limit,
                "strides": [1] * len(shape),
            }
            parsed = {
                name: rewriter.attrs.parse(f"array<i64: {', '.join(map(str, sizes))}>") for name, sizes in attrs.items()
            }
            type = _resized(indices.type, vector, end - first, rewriter)
            cut = Op("stablehlo.slice", [indices], [type], parsed, location=op.place)
            yield rewriter.insert(cut, op).result


def _join(values: list[Value], dim: int, op: Op, rewriter: Rewriter) -> Value:
    """The concatenation of values."""
    if len(values) == 1:
        return values[0]
    size = sum((value.type.shape or ())[dim] for value in values)
    type = _resized(values[0].type, dim, size, rewriter)
    attrs = {"dimension": rewriter.attrs.parse(f"{dim} : i64")}
    return rewriter.insert(Op(_CONCATENATE, values, [type], attrs, location=op.place), op).result


def _resized(type: ValueType, dim: int, size: int, rewriter: Rewriter) -> ValueType:
    shape = type.shape or ()
    with ir.Location.unknown():
        return rewriter.attrs.ranked_type((*shape[:dim], size, *shape[dim + 1 :]), type)


def _replace(op: Op, new: Op, rewriter: Rewriter) -> None:
    """Replace an op by another one, which takes over its regions."""
    rewriter.insert(new, op)
    for region, old_region in zip(new.regions, op.regions):
        region.take_body(old_region)
    for result, old in zip(new.results, op.results):
        for user in old.users():
            rewriter.touch(user)
        old.replace_uses(result)
    rewriter.erase(op)
