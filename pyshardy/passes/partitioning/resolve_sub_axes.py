"""`pyshardy-resolve-sub-axes`: keeps sub-axes apart that cannot be cut from one axis at once.

Source: docs/semantics/partitioner.md#sub-axes-that-exclude-each-other
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, combinations

from pyshardy.core.axes import AxisRef
from pyshardy.core.grids import exclude_each_other, grid_axes, on_one_grid
from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.dataflow import is_data_flow_op
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import arg_sharding, functions, is_declaration, is_public, result_count, result_sharding
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_in, ops_named
from pyshardy.ir.shardings import get_shardings, transform_shardings
from pyshardy.passes.base import Pass
from pyshardy.rules.properties import REDUCING_RESHARDS
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.reshards.op_reshards import reshard_around
from pyshardy.transforms.reshards.survey import distinct_shardings
from pyshardy.transforms.reshards.written_collectives import reduced_axes

_STRUCTURE = ("func.", "sdy.", "builtin.")


class ResolveSubAxes(Pass):
    """Use only sub-axes together that can be cut from one axis at once.

    Two sub-axes may overlap without one being a part of the other. No group of devices then holds the shards along one
    of them alone, so no collective combines these. A sharding with two such sub-axes loses the later one. An op whose
    operands and results have them gets reshards around it. Inputs and outputs of the program keep their shardings, so
    there they are an error.
    """

    name = "pyshardy-resolve-sub-axes"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        bodies = [function for function in functions(op) if not is_declaration(function)]
        if not any(_has_excluded(_axes_in(function)) for function in bodies):
            return
        for function in filter(is_public, bodies):
            _check_border(function)
        transform_shardings(op, cache(_alone))
        for inner in chain.from_iterable(map(list, map(ops_in, bodies))):
            if inner.name in REDUCING_RESHARDS:
                _check_reduced(inner)
            elif not _only_passes_on(inner):
                _reshard(inner)


def _axes_in(function: Op) -> Iterator[AxisRef]:
    """The axes that shard or reduce something in a function."""
    for sharding in distinct_shardings(function):
        yield from grid_axes(sharding)
    for op in ops_named(function, REDUCING_RESHARDS):
        yield from reduced_axes(op)


def _has_excluded(axes: Iterable[AxisRef]) -> bool:
    parts = {axis for axis in axes if not axis.is_full}
    return any(exclude_each_other(axis, other) for axis, other in combinations(parts, 2))


def _alone(sharding: TensorSharding) -> TensorSharding:
    (found,) = on_one_grid([sharding])
    assert found is not None
    return found


def _check_border(function: Op) -> None:
    """Refuse inputs and outputs whose shards no collective can gather."""
    arguments = len(function.region.blocks[0].args)
    inputs = [("argument", index, arg_sharding(function, index)) for index in range(arguments)]
    outputs = [("result", index, result_sharding(function, index)) for index in range(result_count(function))]
    for kind, index, sharding in (*inputs, *outputs):
        if sharding is not None and _has_excluded(grid_axes(sharding)):
            problem = f"has {kind} {index} sharded as {sharding}, but its sub-axes cannot be cut from one axis at once"
            raise PassError(function, problem)


def _check_reduced(op: Op) -> None:
    """Refuse a sum along an axis that the axes of its result exclude."""
    for axis in reduced_axes(op):
        for other in grid_axes(op.attrs["out_sharding"]):
            if exclude_each_other(axis, other):
                raise PassError(op, f"reduces along {axis} what is sharded along {other}, which excludes it")


def _only_passes_on(op: Op) -> bool:
    return op.name.startswith(_STRUCTURE) or is_data_flow_op(op) or op.is_terminator


def _reshard(op: Op) -> None:
    """Reshard around an op, so that all its axes can be cut from the mesh at once."""
    given = get_shardings((*op.operands, *op.results))
    needed = on_one_grid(given)
    if needed != given:
        reshard_around(op, [new if new is not old else None for old, new in zip(given, needed)])
