"""The meshes that a search tries for a number of devices, and the networks under the axes of a mesh."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyshardy.costing.hardware import Hardware
from pyshardy.costing.topology import Topology

MOST_MODEL = 64
"""The largest axis "model" that is looked at."""


def meshes_of(devices: int, hardware: Hardware) -> list[dict[str, int]]:
    """The meshes of so many devices, as axes with sizes.

    They have the axis "data", or "data" and "model". The devices may be on several networks of the innermost kind, such
    as nodes of GPUs or slices of TPUs. Then there are also meshes with "data" from node to node, and with "fsdp" and
    "model" within a node.

    Args:
        devices: The number of devices.
        hardware: The chip with its networks.

    >>> from pyshardy.costing.chips import find_hardware
    >>> for mesh in meshes_of(16, find_hardware("h100")):
    ...     print(mesh)
    {'data': 16}
    {'data': 8, 'model': 2}
    {'data': 4, 'model': 4}
    {'data': 2, 'model': 8}
    {'data': 1, 'model': 16}
    {'data': 2, 'fsdp': 8}
    {'data': 2, 'fsdp': 4, 'model': 2}
    {'data': 2, 'fsdp': 2, 'model': 4}
    """
    found = [
        {"data": devices // model, "model": model} if model > 1 else {"data": devices} for model in _divisors(devices)
    ]
    inner = hardware.networks[0].devices or devices
    if inner < devices and devices % inner == 0:
        within = {model: inner // model for model in _divisors(inner) if model < inner}
        outer = {"data": devices // inner}
        found += [outer | {"fsdp": fsdp} | ({"model": model} if model > 1 else {}) for model, fsdp in within.items()]
    return found


def richest_first(axes: Mapping[str, int]) -> tuple[int, ...]:
    """A sort key of meshes: more axes come first, as plans can use several as one; then axes of similar sizes.

    >>> sorted([{"data": 8}, {"data": 1, "model": 8}, {"data": 4, "model": 2}], key=richest_first)
    [{'data': 4, 'model': 2}, {'data': 8}, {'data': 1, 'model': 8}]
    """
    sizes = [size for size in axes.values() if size > 1]
    return -len(sizes), max(sizes, default=1)


def _divisors(devices: int) -> Iterable[int]:
    return [size for size in range(1, min(devices, MOST_MODEL) + 1) if devices % size == 0]


def placement(topology: Topology) -> str:
    """Which axes of a mesh lie on which network, in words; empty if there is one network.

    >>> from pyshardy.costing.chips import find_hardware
    >>> from pyshardy.costing.topology import make_topology
    >>> placement(make_topology(find_hardware("h100"), (("data", 4), ("model", 8))))
    '"data" lies on the network (50 GB/s per device), "model" on nvlink (450 GB/s)'
    >>> placement(make_topology(find_hardware("h100"), (("data", 16), ("model", 2))))
    '"data" lies on nvlink (450 GB/s per device) and the network (50 GB/s), "model" on nvlink (450 GB/s)'
    >>> placement(make_topology(find_hardware("h100"), (("model", 8),)))
    ''
    """
    networks = topology.hardware.networks
    used = [sorted({lane.network for lane in lanes if lane.size > 1}) for lanes in topology.lanes]
    if len({network for one in used for network in one}) < 2:
        return ""
    parts: list[str] = []
    for (axis, _), on in zip(topology.axes, used):
        names: list[str] = []
        for number in on:
            name = networks[number].name
            speed = f"{networks[number].bytes_per_s / 1e9:.0f} GB/s{' per device' if not parts and not names else ''}"
            names.append(f"{'the network' if name == 'network' else name} ({speed})")
        if names:
            parts.append(f'"{axis}" {"lies " if not parts else ""}on {" and ".join(names)}')
    return ", ".join(parts)
