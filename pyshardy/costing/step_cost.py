"""Time and memory of a program without the tables of `estimate`, for comparing many programs.

A program with many equal layers may have three of them: see `pyshardy.costing.further_layers`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.compilers import Compiler, assumed
from pyshardy.costing.counting import count_kernels
from pyshardy.costing.estimate import straggling
from pyshardy.costing.further_layers import OUTSIDE, LayerOf, with_further_layers
from pyshardy.costing.joining import joined
from pyshardy.costing.launches import launches_of
from pyshardy.costing.memory import Planner
from pyshardy.costing.peak import fixed_bytes
from pyshardy.costing.program import CostProgram
from pyshardy.costing.topology import Topology


class StepCost(NamedTuple):
    """Time and memory of one run of a program, such as a training step; of any estimate, rough or exact.

    Attributes:
        seconds: The time of one run.
        bytes: The peak memory of a device, without holes between buffers.
        communication_seconds: The time of all collectives, with waiting for the slowest device.
    """

    seconds: float
    bytes: float
    communication_seconds: float = 0.0

    def scaled(self, time: float, memory: float) -> StepCost:
        """The same with times and memory multiplied by factors."""
        return StepCost(self.seconds * time, self.bytes * memory, self.communication_seconds * time)


def step_cost(
    program: CostProgram,
    topology: Topology,
    model: CollectiveModel = CollectiveModel.FORMULA,
    compiler: Compiler | None = None,
    layer_of: LayerOf = lambda op: OUTSIDE,
) -> StepCost:
    """Time and memory of one run of a program.

    Args:
        program: The program of one device.
        topology: The chip, and where the mesh lies.
        model: The model of collectives.
        compiler: What the compiler does; by default, the compiler that is assumed for the chip.
        layer_of: The position of an op in the layers of a short program; None if it is where its operands are.
    """
    compiler = compiler or assumed(topology.hardware)
    launches = launches_of(program, topology, model, replace(compiler, joins=frozenset()))
    launches = with_further_layers(launches, layer_of)
    scheduler = launches.scheduler()
    block = joined(launches.block, compiler.joins, compiler.joined_bytes)
    totals = scheduler.block(block)
    waiting = totals.seconds * straggling(count_kernels(block), topology)
    plan = Planner(launches.flat, compiler, launches.expected_seconds()).main(block, launches.program.inputs)
    fixed = sum(fixed_bytes(launches.program, launches.flat, block))
    return StepCost(totals.seconds + waiting, fixed + plan.peak, totals.communication_seconds + waiting)
