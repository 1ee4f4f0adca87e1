"""A program as the kernels that a compiler launches, with their prices: what all estimates start from."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pyshardy.costing.bf16_products import with_bf16_for_products
from pyshardy.costing.collectives import CollectiveModel, collective_seconds, network_of
from pyshardy.costing.compilers import Compiler, assumed
from pyshardy.costing.donation import with_aliases
from pyshardy.costing.equal_collectives import with_equal_collectives_merged
from pyshardy.costing.flat import Flat
from pyshardy.costing.flatten import flatten
from pyshardy.costing.fusion import fuse
from pyshardy.costing.host_memory import HOST_COPIES, host_copy_seconds, with_host_memory
from pyshardy.costing.kernels import Kernel, Kernels
from pyshardy.costing.lowering import lower
from pyshardy.costing.moved_sums import with_moved_sums
from pyshardy.costing.narrowing import with_narrow_collectives
from pyshardy.costing.partial_sums import with_added_partial_sums
from pyshardy.costing.program import CostProgram, OpTraffic
from pyshardy.costing.reduce_scatters import with_reduce_scatters
from pyshardy.costing.roofline import Roofline
from pyshardy.costing.schedule import Scheduler
from pyshardy.costing.stacks import with_whole_stacks
from pyshardy.costing.topology import Topology


class Launches(NamedTuple):
    """The kernels of a program, and what gives them prices.

    Attributes:
        program: The program of one device, with aliases of donated arguments, as XLA rewrites its
            sums over devices after partitioning.
        topology: The chip, and the networks of the mesh axes.
        model: The model of collectives.
        compiler: What the compiler does.
        flat: The ops that are left before fusion.
        block: The kernels.
        roofline: The prices of kernels.
        seconds_of: Gives the time of a collective.
    """

    program: CostProgram
    topology: Topology
    model: CollectiveModel
    compiler: Compiler
    flat: Flat
    block: Kernels
    roofline: Roofline
    seconds_of: Callable[[OpTraffic], float]

    def scheduler(self) -> Scheduler:
        """What puts the kernels on streams."""
        host = len(self.topology.hardware.networks)

        def stream(traffic: OpTraffic) -> int:
            return host if traffic.kind in HOST_COPIES else network_of(traffic, self.topology)

        return Scheduler(self.roofline, self.seconds_of, stream)

    def expected_seconds(self) -> Callable[[Kernel], float]:
        """What gives the time that the compiler expects a kernel to take when it orders kernels."""
        far, seconds_of = self.compiler.far_seconds, self.scheduler().kernel
        if not far:
            return seconds_of

        def expected(kernel: Kernel) -> float:
            traffic = kernel.root.traffic
            if traffic is None or traffic.kind in HOST_COPIES or not network_of(traffic, self.topology):
                return seconds_of(kernel)
            return far

        return expected


def launches_of(
    program: CostProgram,
    topology: Topology,
    model: CollectiveModel = CollectiveModel.FORMULA,
    compiler: Compiler | None = None,
) -> Launches:
    """The kernels of a program on a chip. A collective or kernel that occurs again is priced once.

    Args:
        program: The program of one device.
        topology: The chip, and the networks of the mesh axes.
        model: The model of collectives.
        compiler: What the compiler does; by default, the compiler that is assumed for the chip.
    """
    compiler = compiler or assumed(topology.hardware)
    program = with_added_partial_sums(with_whole_stacks(with_aliases(program)))
    program = with_reduce_scatters(with_moved_sums(program))
    if compiler.merges_gathers:
        program = with_equal_collectives_merged(program, compiler.merges_gathers)
    if compiler.multiplies_bf16:
        program = with_bf16_for_products(program, compiler.narrows)
    if compiler.narrows:
        program = with_narrow_collectives(program, compiler)
    flat = lower(with_host_memory(flatten(program, compiler), program.inputs), compiler)
    roofline, seconds_of = Roofline(topology.hardware, flat.tensors), pricer_of(topology, model)
    return Launches(program, topology, model, compiler, flat, fuse(flat, compiler), roofline, seconds_of)


def pricer_of(topology: Topology, model: CollectiveModel) -> Callable[[OpTraffic], float]:
    """What gives the time of collectives, and of copies to and from the host.

    Args:
        topology: The chip, and the networks of the mesh axes.
        model: The model of collectives.
    """
    priced: dict[OpTraffic, float] = {}

    def seconds_of(traffic: OpTraffic) -> float:
        if traffic not in priced:
            is_copy = traffic.kind in HOST_COPIES
            priced[traffic] = (
                host_copy_seconds(traffic, topology.hardware)
                if is_copy
                else collective_seconds(traffic, topology, model)
            )
        return priced[traffic]

    return seconds_of
