"""The shardings of inputs and outputs: those that a search drops, keeps, and finds, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pyshardy.core.alike import common
from pyshardy.core.axes import Dims
from pyshardy.core.sharding import TensorSharding
from pyshardy.frontend.annotate import annotate_ports, named_ports
from pyshardy.frontend.input_names import matching_names
from pyshardy.frontend.interface import InterfaceTensor, input_tensors, output_tensors
from pyshardy.ir.module import Module
from pyshardy.report.plan import PlanSpec
from pyshardy.searching.autopartition.registry import AxesPerDim, checked_dims
from pyshardy.searching.autopartition.space import Assignment, Space
from pyshardy.searching.program.search_program import mesh_to_search

_PINNING = "keeping a sharding in a search"


def without_shardings(module: Module, keep: bool | Iterable[str]) -> Module:
    """The module without the shardings of inputs and outputs, except those to keep.

    Args:
        module: The program.
        keep: The names of the inputs and outputs that keep their shardings; True for all, False for none.
    """
    if keep is True:
        return module
    ports = [("arg_attrs", port) for port in input_tensors(module.root)]
    ports += [("res_attrs", port) for port in output_tensors(module.root)]
    names = [port.name for _, port in ports]
    kept = {place for name in (() if keep is False else keep) for place in matching_names(name, names)}
    free = [(kind, port, None) for place, (kind, port) in enumerate(ports) if place not in kept and port.sharding]
    return annotate_ports(module, free)


def pinned(module: Module, specs: Mapping[str, AxesPerDim]) -> tuple[Module, list[PlanSpec]]:
    """The module with shardings that the user wants for some inputs and outputs, and these shardings.

    Args:
        module: The module.
        specs: Axes by the names of inputs and outputs, of the form that a partitioner returns.

    Raises:
        UsageError: A name matches nothing, or axes do not fit.
    """
    mesh, found = mesh_to_search(module.root)
    sizes = dict(found.axes)
    inputs, outputs = input_tensors(module.root), output_tensors(module.root)
    given, placed = [], []
    for kind, port, axes in named_ports(inputs, outputs, specs):
        dims = checked_dims(_PINNING, port.name, axes, port.shape, sizes)
        given.append((kind, port, TensorSharding(mesh, [list(names) for names in dims])))
        placed.append(Placed(port, dims, kind == "res_attrs"))
    return annotate_ports(module, given), port_specs(placed, inputs, outputs)


class Placed(NamedTuple):
    """An input or an output, with its axes."""

    port: InterfaceTensor
    dims: Dims
    is_output: bool


def port_specs(
    placed: Iterable[Placed], inputs: Sequence[InterfaceTensor], outputs: Sequence[InterfaceTensor]
) -> list[PlanSpec]:
    """The shardings of inputs and outputs, with one name for several where that fits exactly these.

    Args:
        placed: The inputs and outputs with their axes.
        inputs: All inputs of the program.
        outputs: All outputs of the program.
    """
    alike: dict[tuple[bool, tuple[int, ...], str, Dims], list[str]] = {}
    for port, dims, is_output in placed:
        alike.setdefault((is_output, port.shape, port.element, dims), []).append(port.name)
    names = [port.name for port in (*inputs, *outputs)]
    return [
        PlanSpec(name, shape, element, dims, count, is_output)
        for (is_output, shape, element, dims), members in alike.items()
        for name, count in _patterns(members, names)
    ]


def plan_specs(
    space: Space, assignment: Assignment, inputs: Sequence[InterfaceTensor], outputs: Sequence[InterfaceTensor]
) -> Iterator[PlanSpec]:
    """The shardings that an assignment gives to inputs and outputs.

    Args:
        space: The decisions.
        assignment: The assignment.
        inputs: The inputs of the program.
        outputs: The outputs of the program.
    """
    names = [port.name for port in (*inputs, *outputs)]
    for group, dims in zip(space.groups, assignment):
        ports = [inputs[member].name for member in group.members] if group.is_free else []
        free = [outputs[place].name for place in group.outputs if outputs[place].sharding is None]
        axes = dims if group.fixed is None else tuple(
            tuple(axis.name for axis in dim.axes) for dim in group.fixed.dims
        )  # fmt: skip
        for is_output, members in ((False, ports), (True, free)):
            for name, count in _patterns(members, names):
                yield PlanSpec(name, group.shape, group.element, axes, count, is_output)


def _patterns(members: Sequence[str], names: Sequence[str]) -> list[tuple[str, int]]:
    """The fewest patterns that match exactly these names."""
    if not members:
        return []
    pattern = common(members)
    if len(members) > 1 and sorted(names[place] for place in matching_names(pattern, names)) == sorted(members):
        return [(pattern, len(members))]
    return [(name, 1) for name in members]
