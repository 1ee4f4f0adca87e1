"""Estimates how long collectives take, with three models.

- `formula`: bandwidth and latency by the topology of the network. It is the default. It needs only a data sheet, and
  works for every chip. Where the other two apply, it lies between them.
- `measured`: published measurements of this kind on the same chip, scaled to the number of devices; the formula where
  there are none.
- `xla`: follows XLA's own estimator for GPUs: messages go through the network card in chunks of 4 MiB.

See docs/cost.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from math import ceil, prod

from pyshardy.costing.hardware import TORUS, Hardware, Network
from pyshardy.costing.program import RAGGED, OpTraffic
from pyshardy.costing.topology import Lane, Topology

_CHUNK_BYTES = 4 * 2**20
_LAUNCH_S, _ROUND_TRIP_FACTOR, _OVERHEAD = 45e-6, 5.0, 1.025


class CollectiveModel(Enum):
    """How the time of a collective is estimated; see the docstring of this module."""

    FORMULA = "formula"
    MEASURED = "measured"
    XLA = "xla"


def collective_seconds(traffic: OpTraffic, topology: Topology, model: CollectiveModel) -> float:
    """The seconds that a collective takes when it runs once and alone."""
    lanes = topology.lanes_of(traffic.axes, traffic.group_size)
    if not lanes or not traffic.sent_bytes:
        return 0.0
    hardware = topology.hardware
    if model is CollectiveModel.XLA:
        return _by_xla(traffic, lanes, hardware)
    if model is CollectiveModel.MEASURED:
        found = _by_measurement(traffic, lanes, hardware)
        if found is not None:
            return found
    return hardware.launch_s + _by_formula(traffic, lanes, hardware)


def network_of(traffic: OpTraffic, topology: Topology) -> int:
    """The network that a collective occupies: the outermost one that it uses."""
    lanes = topology.lanes_of(traffic.axes, traffic.group_size)
    return max((lane.network for lane in lanes), default=0)


def _by_formula(traffic: OpTraffic, lanes: Sequence[Lane], hardware: Hardware) -> float:
    """The time by the formula, network by network: a gather uses the outer ones first, while arrays are small.

    Messages go through the networks in pieces, one after the other, so the slowest network counts.
    """
    kind, size = traffic.kind, float(traffic.whole_bytes)
    by_network = [
        (network, [lane for lane in lanes if lane.network == index]) for index, network in enumerate(hardware.networks)
    ]
    used = [(network, parts) for network, parts in by_network if parts]
    if kind in ("collective_permute", "collective_broadcast"):
        network, _ = used[-1]
        return network.latency_s + _ramped(network, traffic.sent_bytes / (network.bytes_per_s * network.efficiency))
    if kind in ("all_to_all", RAGGED):
        return sum(_all_to_all(network, parts, size) for network, parts in used)
    times = 2 if kind == "all_reduce" else 1
    latency, slowest, inside = 0.0, 0.0, 1
    for network, parts in used:
        reduces = network.reduces if kind == "all_reduce" and len(used) == 1 else 1.0
        latency += times * _latency(network, parts)
        slowest = max(slowest, _ramped(network, times * _gather(network, parts, size / inside) / reduces))
        inside *= prod(lane.size for lane in parts)
    return max(latency, slowest) if used[0][0].kind == TORUS and len(used) == 1 else latency + slowest


def _ramped(network: Network, seconds: float) -> float:
    """The seconds of a message that takes so long at full bandwidth, with the time to reach that bandwidth."""
    return seconds + math.sqrt(seconds * network.ramp_s)


def _latency(network: Network, lanes: Sequence[Lane]) -> float:
    """The seconds that the smallest message takes along lanes of one network."""
    if network.kind == TORUS:
        return network.latency_s * sum(lane.size / 2 if lane.is_closed else lane.size - 1 for lane in lanes)
    return network.latency_s * _steps(prod(lane.size for lane in lanes))


def _gather(network: Network, lanes: Sequence[Lane], size: float) -> float:
    """The seconds of an all-gather or reduce-scatter of so many bytes along lanes of one network, without latency."""
    count = prod(lane.size for lane in lanes)
    links = sum(2 if lane.is_closed else 1 for lane in lanes) if network.kind == TORUS else 1
    return size * (count - 1) / count / (network.bytes_per_s * network.efficiency * links)


def _all_to_all(network: Network, lanes: Sequence[Lane], size: float) -> float:
    rate = network.bytes_per_s * network.efficiency
    count = prod(lane.size for lane in lanes)
    if network.kind != TORUS:
        return _latency(network, lanes) + _ramped(network, size * (count - 1) / count**2 / rate)
    held = size / count
    return max(_latency(network, lanes), sum(held * lane.size / (8 if lane.is_closed else 4) / rate for lane in lanes))


def _steps(count: int) -> int:
    """The steps of a message through a switch: around a ring if that is short, else along trees."""
    return count - 1 if count <= 8 else 7 + (count - 1).bit_length() - 3


def _by_measurement(traffic: OpTraffic, lanes: Sequence[Lane], hardware: Hardware) -> float | None:
    """The measurement on the next number of devices, scaled as a ring's bandwidth; None if there is none."""
    if len({lane.network for lane in lanes}) != 1 or lanes[0].network != 0:
        return None
    count = prod(lane.size for lane in lanes)
    known = [entry for entry in hardware.measured if entry.kind == traffic.kind]
    if not known:
        return None
    nearest = min(known, key=lambda entry: (abs(entry.devices - count), entry.devices))
    return nearest.at(traffic.whole_bytes) * _share(count) / _share(nearest.devices)


def _share(count: int) -> float:
    return (count - 1) / count


def _by_xla(traffic: OpTraffic, lanes: Sequence[Lane], hardware: Hardware) -> float:
    """The time by XLA's model: chunks through the network card, round after round; in a node, the fast network."""
    count = prod(lane.size for lane in lanes)
    outer = max(lane.network for lane in lanes)
    network = hardware.networks[outer]
    inner = prod(lane.size for lane in lanes if lane.network < outer)
    rounds = 2 if traffic.kind == "all_reduce" else 1
    message = traffic.whole_bytes / count
    per_message = (
        _OVERHEAD * message / network.bytes_per_s
        + ceil(message / _CHUNK_BYTES) * network.latency_s
        + _ROUND_TRIP_FACTOR * network.latency_s
    )
    return per_message * (count - 1) / inner * rounds + _LAUNCH_S
