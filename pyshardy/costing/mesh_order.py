"""Another order of the axes of a mesh, with which less is sent from node to node, or from slice to slice."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import NamedTuple

from pyshardy.costing.counting import count_kernels
from pyshardy.costing.estimate import straggling
from pyshardy.costing.launches import Launches, pricer_of
from pyshardy.costing.topology import Topology, make_topology
from pyshardy.errors import UsageError

_MOST_AXES = 5
_LEAST_GAIN = 0.05
"""The share of a step that another order must save to be told."""


class MeshOrder(NamedTuple):
    """An order of mesh axes, the outermost first.

    Attributes:
        axes: Names and sizes.
        seconds: The time of a step.
        network: The name of the network that the last axes get.
    """

    axes: tuple[tuple[str, int], ...]
    seconds: float
    network: str


def faster_order(launches: Launches) -> MeshOrder | None:
    """The best other order of the axes, if a step is faster by 5 % with it; None if they are not placed inside out.

    The program of a device stays the same: only the networks change on which it communicates.

    Args:
        launches: The kernels of the program.
    """
    topology = launches.topology
    networks = {lane.network for lanes in topology.lanes for lane in lanes if lane.size > 1}
    if len(networks) < 2 or topology != _placed(topology, topology.axes):
        return None
    best = min(_others(topology), key=lambda other: _communication(launches, other), default=topology)
    seconds = _step(launches, best)
    is_faster = seconds < _step(launches, topology) * (1 - _LEAST_GAIN)
    return MeshOrder(best.axes, seconds, topology.hardware.networks[0].name) if is_faster else None


def _others(topology: Topology) -> Iterator[Topology]:
    """The mesh in every order of its axes, as far as they fit."""
    alone = [axis for axis in topology.axes if axis[1] == 1]
    axes = [axis for axis in topology.axes if axis[1] > 1]
    if len(axes) <= _MOST_AXES:
        found = (_placed(topology, (*alone, *order)) for order in permutations(axes))
        yield from (one for one in found if one is not None)


def _placed(topology: Topology, axes: tuple[tuple[str, int], ...]) -> Topology | None:
    """A mesh on the networks from the inside out; None if it does not fit."""
    try:
        return make_topology(topology.hardware, axes, shape=topology.shape or None)
    except UsageError:
        return None


def _communication(launches: Launches, topology: Topology) -> float:
    """The seconds of all collectives, hidden or not."""
    seconds_of = pricer_of(topology, launches.model)
    counted = count_kernels(launches.block)
    return sum(one.times * seconds_of(one.op.traffic) for one in counted if one.op.traffic is not None)


def _step(launches: Launches, topology: Topology) -> float:
    """The seconds of a step."""
    moved = launches._replace(topology=topology, seconds_of=pricer_of(topology, launches.model))
    return moved.scheduler().block(launches.block).seconds * (1 + straggling(count_kernels(launches.block), topology))
