"""Time and memory of a program alone, for who compares many: the figures of `estimate` without its tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pyshardy.costing.collectives import CollectiveModel, collective_seconds, network_of
from pyshardy.costing.compilers import ACCELERATOR, Compiler
from pyshardy.costing.counting import count_collectives
from pyshardy.costing.donation import with_aliases
from pyshardy.costing.estimate import straggling
from pyshardy.costing.flatten import flatten
from pyshardy.costing.fusion import fuse
from pyshardy.costing.lowering import lower
from pyshardy.costing.memory import Planner
from pyshardy.costing.peak import fixed_bytes
from pyshardy.costing.program import Op, Program, Traffic
from pyshardy.costing.roofline import Roofline
from pyshardy.costing.schedule import Scheduler
from pyshardy.costing.topology import Topology


class Brief(NamedTuple):
    """Time and memory of a program.

    Attributes:
        seconds: Of one run.
        bytes: Peak memory, by the part of the program; holes between buffers are not counted.
    """

    seconds: float
    bytes: dict[int, float]

    @property
    def peak_bytes(self) -> float:
        """The peak of all parts."""
        return max(self.bytes.values())


def brief_estimate(
    program: Program,
    topology: Topology,
    model: CollectiveModel = CollectiveModel.FORMULA,
    compiler: Compiler = ACCELERATOR,
    part_of: Callable[[Op], int | None] = lambda op: None,
) -> Brief:
    """Time and memory of one run of a program.

    Args:
        program: The program of one device.
        topology: The chip, and where the mesh lies.
        model: How collectives are priced.
        compiler: What is known of the compiler.
        part_of: The part of the program that an op is in; None for that of the op before. The first part is 0.
    """
    program = with_aliases(program)
    flat = lower(flatten(program), compiler)
    block = fuse(flat, compiler)
    priced: dict[Traffic, float] = {}

    def seconds_of(traffic: Traffic) -> float:
        if traffic not in priced:
            priced[traffic] = collective_seconds(traffic, topology, model)
        return priced[traffic]

    scheduler = Scheduler(Roofline(topology.hardware, flat.tensors), seconds_of, lambda one: network_of(one, topology))
    seconds = scheduler.block(block).seconds
    seconds += seconds * straggling(count_collectives(program), topology)
    plan, base = Planner(flat, compiler).main(block, program.inputs), sum(fixed_bytes(program, flat, block))
    part = 0
    found = {part: 0}
    for kernel, held in zip(plan.kernels, plan.held):
        own = part_of(kernel.root)
        part = part if own is None else own
        found[part] = max(found.get(part, 0), held)
    found[part] = max(found[part], plan.held[-1])
    return Brief(seconds, {part: float(base + held) for part, held in found.items()})
