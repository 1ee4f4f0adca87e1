"""`sdy-update-non-divisible-input-output-shardings`: makes shardings at function boundaries divide dimensions.

Source: docs/semantics/export.md#sdy-update-non-divisible-input-output-shardings
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.axis_lists import axes_size
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.ir.functions import (
    CALL,
    SHARDING,
    arg_sharding,
    functions,
    is_declaration,
    result_sharding,
    return_op,
    set_arg_sharding,
    set_result_sharding,
)
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import ModuleMeshes, block_arg_shardings, set_block_arg_shardings
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext

_OTHER_BORDERS = (CALL, "sdy.manual_computation")


class UpdateNonDivisibleInputOutputShardings(Pass):
    """Shorten the shardings of function arguments and results, calls and manual computations until they divide."""

    name = "sdy-update-non-divisible-input-output-shardings"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        shorter = _Shorter(context.meshes)
        for function in functions(op):
            if not is_declaration(function):
                _update_function(function, shorter)
        for inner in ops_named(op, _OTHER_BORDERS):
            if inner.name == CALL:
                if SHARDING in inner.attrs:
                    inner.set_attr(SHARDING, shorter.all_of(inner.attrs[SHARDING], inner.results))
            else:
                args = inner.region.block.args
                set_block_arg_shardings(inner, shorter.all_of(block_arg_shardings(inner), args))
                inner.set_attr("out_shardings", shorter.all_of(inner.attrs["out_shardings"], inner.results))


def _update_function(function: Op, shorter: _Shorter) -> None:
    for arg in function.region.blocks[0].args:
        sharding = arg_sharding(function, arg.index)
        if sharding is not None and (new := shorter.of(sharding, arg)) is not sharding:
            set_arg_sharding(function, arg.index, new)
    for index, value in enumerate(return_op(function).operands):
        sharding = result_sharding(function, index)
        if sharding is not None and (new := shorter.of(sharding, value)) is not sharding:
            set_result_sharding(function, index, new)


class _Shorter:
    """Shortens shardings until they divide the dimensions of their values; caches results by sharding and shape."""

    def __init__(self, meshes: ModuleMeshes) -> None:
        self._meshes = meshes
        self._known: dict[tuple[TensorSharding, tuple[int, ...]], TensorSharding] = {}

    def of(self, sharding: TensorSharding, value: Value) -> TensorSharding:
        """The shortened sharding of a value."""
        shape = value.type.shape
        if not value.type.is_static or shape is None or not sharding.dims:
            return sharding
        found = self._known.get((sharding, shape))
        if found is None:
            found = divisible_sharding(sharding, shape, mesh_of(sharding, self._meshes))
            self._known[sharding, shape] = found
        return found

    def all_of(self, shardings: Sequence[TensorSharding], values: Sequence[Value]) -> tuple[TensorSharding, ...]:
        """The same for several values."""
        return tuple([self.of(sharding, value) for sharding, value in zip(shardings, values)])


def divisible_sharding(sharding: TensorSharding, shape: Sequence[int], mesh: Mesh) -> TensorSharding:
    """The sharding with every dimension cut to a prefix of its axes that divides the size.

    >>> from pyshardy.core.notation import parse_sharding
    >>> divisible_sharding(parse_sharding('<@m, [{"p", ?}p1]>'), (6,), Mesh([("p", 4)]))
    TensorSharding(<@m, [{"p":(1)2, ?}]>)
    """

    def cut(dim: DimSharding, size: int) -> DimSharding:
        if size % axes_size(dim.axes, mesh) == 0:
            return dim
        return DimSharding(divisible_prefix(dim.axes, size, mesh), dim.is_open)

    return sharding.with_dims(cut(dim, size) for dim, size in zip(sharding.dims, shape))


def divisible_prefix(axes: Axes, size: int, mesh: Mesh) -> Axes:
    """The longest prefix of the axes whose product divides the size; the last may be a sub-axis."""
    kept: list[AxisRef] = []
    for axis in axes:
        length = axis.length(mesh)
        part = gcd(length, size)
        if part == 1:
            break
        kept.append(axis.head(part, mesh))
        if part < length:
            break
        size //= part
    return tuple(kept)
