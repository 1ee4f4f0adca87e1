"""The program as it was given, as a candidate of a search and as its plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pyshardy.core.axes import Dims
from pyshardy.core.sharding import TensorSharding
from pyshardy.costing.step_cost import StepCost
from pyshardy.errors import ShardyError
from pyshardy.frontend.annotate import annotate_ports
from pyshardy.frontend.interface import InterfaceTensor, input_tensors, output_tensors
from pyshardy.ir.functions import functions
from pyshardy.ir.module import Module
from pyshardy.propagation.options import PropagateOptions
from pyshardy.report.plan import PlanRow, PlanSpec
from pyshardy.results.sharded_program import shard
from pyshardy.searching.autopartition.space import Assignment
from pyshardy.searching.planning.compiled import AS_GIVEN
from pyshardy.searching.planning.estimates import row_of
from pyshardy.searching.planning.options import SearchOptions
from pyshardy.searching.planning.ports import Placed, port_specs
from pyshardy.searching.planning.state import SearchState
from pyshardy.searching.program.search_program import mesh_to_search, short_program
from pyshardy.transforms.reshards.survey import distinct_shardings

_ERROR = 0.05
"""The share by which an exact estimate from few layers may be wrong, unless it is known to be right."""


def is_sharded(module: Module) -> bool:
    """Whether any value of a program has a sharding."""
    return any(distinct_shardings(function) for function in functions(module.root))


def given_assignment(state: SearchState) -> Assignment | None:
    """The axes that inputs have in the given program after propagation; None if it has no shardings.

    Axes that an input of the search cannot have, such as parts of axes, are left out.
    """
    module, space = state.given, state.space
    if not is_sharded(module):
        return None
    with module.context:
        short, _ = short_program(module.root)
    try:
        root = shard(module.with_root(short.root), PropagateOptions())[1]
    except ShardyError:
        return None
    found = {short.inputs[port.index]: port.sharding for port in input_tensors(root)}
    dims = []
    for number, group in enumerate(space.groups):
        members = (found.get(state.inputs[member].index) for member in group.members)
        axes = _full_axes(next((one for one in members if one is not None), None), len(group.shape))
        dims.append(axes if axes is not None and group.is_free and space.fits(number, axes) else space.empty[number])
    return tuple(dims)


def given_row(state: SearchState, plan: PlanRow) -> PlanRow | None:
    """The estimate of the program as the user gave it.

    It is partitioned as a whole only if it may be better than the plan, or if no layer is left out for an estimate.

    Args:
        state: The state of the search.
        plan: The plan.
    """
    name = AS_GIVEN
    if not is_sharded(state.given):
        row = state.estimates.row_of(name, state.space.empty)
        if row is not None:
            return row
    found = _layered_cost(state)
    if found is not None:
        limit, is_exact = state.options.limit, state.estimates.is_like_whole
        error = 0.0 if is_exact else _ERROR
        if state.objective.is_better(plan, row_of(name, found.scaled(1 - error, 1 - error), limit)):
            return row_of(name, found, limit, is_exact)
    return state.options.row(name, state.given)


def _layered_cost(state: SearchState) -> StepCost | None:
    """The exact estimate of the given program from a short one; None if no layer is left out, or it fails."""
    if state.prices is None or state.prices.is_whole:
        return None
    prices = state.layered_of(state.given, is_open=True)
    try:
        return None if prices is None else prices.price({}, {})
    except ShardyError:
        return None


def spelled_out(given: Module, options: SearchOptions | None, row: PlanRow) -> tuple[Module, list[PlanSpec]]:
    """The given program, and its shardings by name; those that propagation finds for inputs are written too.

    They are not if the program would cost more with them.

    Args:
        given: The program as it was given.
        options: The options of the search; None to write none that propagation finds.
        row: Its estimate.
    """
    inputs, outputs = input_tensors(given.root), output_tensors(given.root)
    own = [Placed(port, dims, False) for port, dims in _with_axes(inputs)]
    own += [Placed(port, dims, True) for port, dims in _with_axes(outputs)]
    if options is None:
        return given, port_specs(own, inputs, outputs)
    found = {port.index: port.sharding for port in input_tensors(shard(given, PropagateOptions())[1])}
    free = [replace(port, sharding=found.get(port.index)) for port in inputs if port.sharding is None]
    more = [Placed(port, dims, False) for port, dims in _with_axes(free)]
    mesh, _ = mesh_to_search(given.root)
    written = [("arg_attrs", one.port, TensorSharding(mesh, [list(axes) for axes in one.dims])) for one in more]
    module = annotate_ports(given, written)
    again = options.row(row.name, module)
    if again is None or options.objective.rank(again) > options.objective.rank(row):
        return given, port_specs(own, inputs, outputs)
    return module, port_specs([*own, *more], inputs, outputs)


def _with_axes(ports: Iterable[InterfaceTensor]) -> Iterator[tuple[InterfaceTensor, Dims]]:
    """The inputs or outputs with closed shardings of whole axes, or with shardings that propagation found."""
    for port in ports:
        dims = _full_axes(port.sharding, len(port.shape))
        if dims is not None:
            yield port, dims


def _full_axes(sharding: TensorSharding | None, rank: int) -> Dims | None:
    """The axes of a sharding by name; None if it has parts of axes, or sums that are not complete."""
    if sharding is None or sharding.unreduced or len(sharding.dims) != rank:
        return None
    if not all(axis.is_full for dim in sharding.dims for axis in dim.axes):
        return None
    return tuple(tuple(axis.name for axis in dim.axes) for dim in sharding.dims)
