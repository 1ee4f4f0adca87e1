"""The shardings of inputs and outputs: those that a search drops, and those that it found, by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from pyshardy.autopartition.space import Assignment, Space
from pyshardy.frontend.annotate import annotate_ports, matching_names
from pyshardy.frontend.interface import InterfaceTensor, input_tensors, output_tensors
from pyshardy.ir.module import Module
from pyshardy.report.plan import PlanSpec


def let_go(module: Module, keep: bool | Iterable[str]) -> Module:
    """The module without the shardings that are not kept."""
    if keep is True:
        return module
    ports = [("arg_attrs", port) for port in input_tensors(module.root)]
    ports += [("res_attrs", port) for port in output_tensors(module.root)]
    names = [port.name for _, port in ports]
    kept = {place for name in (() if keep is False else keep) for place in matching_names(name, names)}
    free = [(kind, port, None) for place, (kind, port) in enumerate(ports) if place not in kept and port.sharding]
    return annotate_ports(module, free)


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
        ports = [inputs[member].name for member in group.members] if group.fixed is None else []
        free = [outputs[place].name for place in group.outputs if outputs[place].sharding is None]
        axes = dims if group.fixed is None else tuple(
            tuple(axis.name for axis in dim.axes) for dim in group.fixed.dims
        )  # fmt: skip
        for is_output, members in ((False, ports), (True, free)):
            for name, count in _patterns(members, names):
                yield PlanSpec(name, group.shape, group.element, axes, count, is_output)


def _patterns(members: Sequence[str], names: Sequence[str]) -> list[tuple[str, int]]:
    """The fewest patterns that stand for exactly these names."""
    if not members:
        return []
    pattern = re.sub(r"\[\d+\]", "[*]", members[0])
    if len(members) > 1 and sorted(names[place] for place in matching_names(pattern, names)) == sorted(members):
        return [(pattern, len(members))]
    return [(name, 1) for name in members]
