"""Places mesh axes on networks.

Devices are numbered in mesh order, the last axis fastest. By default the last axis takes the innermost network until
that is full; the rest goes to the next network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import NamedTuple

from pyshardy.core.given import as_shape
from pyshardy.core.text import named_type
from pyshardy.costing.hardware import TORUS, Hardware, Network
from pyshardy.errors import UsageError

_DOING = "placing a mesh on the networks of a chip"
MeshAxes = Sequence[tuple[str, int]]


class Lane(NamedTuple):
    """A part of a mesh axis along one network.

    Attributes:
        network: The index of the network, the innermost one first.
        size: The number of devices that it connects.
        is_closed: Whether it is a ring; otherwise a part of a torus is a line.
    """

    network: int
    size: int
    is_closed: bool = False


@dataclass(frozen=True, slots=True)
class Topology:
    """The networks of the axes of a mesh.

    Attributes:
        hardware: The chip and its networks.
        axes: The mesh axes, the outermost first.
        lanes: The parts of every axis, the innermost first.
        shape: The dimensions of the torus, if the innermost network is one.
    """

    hardware: Hardware
    axes: tuple[tuple[str, int], ...]
    lanes: tuple[tuple[Lane, ...], ...]
    shape: tuple[int, ...] = ()

    @property
    def devices(self) -> int:
        """Number of devices."""
        return prod(size for _, size in self.axes)

    def lanes_of(self, axes: Iterable[tuple[str, int]] | None, group_size: int) -> tuple[Lane, ...]:
        """The lanes that a collective uses, the innermost network first.

        Args:
            axes: The name and size of each mesh axis; a smaller size means a sub-axis. None if the groups match no
                axes. Then the collective is assumed to use the outermost network that a group of its size can reach.
            group_size: The number of devices in a group.
        """
        found: list[Lane] = []
        names = {name: place for place, (name, _) in enumerate(self.axes)}
        if axes is None or any(name not in names for name, _ in axes):
            return _widest(self.hardware.networks, self.lanes, group_size)
        for name, size in axes:
            left = size
            for lane in self.lanes[names[name]]:
                part = gcd(left, lane.size)
                if part > 1:
                    found.append(lane if part == lane.size else Lane(lane.network, part, False))
                    left //= part
            if left > 1:
                found.append(Lane(len(self.hardware.networks) - 1, left))
        return tuple(sorted(found, key=lambda lane: lane.network))

    def describe(self) -> dict[str, str]:
        """The networks of every axis as text.

        >>> from pyshardy.costing.chips import find_hardware
        >>> make_topology(find_hardware("h100"), (("data", 4), ("model", 4))).describe()
        {'data': 'nvlink 2, network 2', 'model': 'nvlink 4'}
        """
        names = [network.name for network in self.hardware.networks]
        return {
            axis: ", ".join(f"{names[lane.network]} {lane.size}{' ring' if lane.is_closed else ''}" for lane in lanes)
            or "one device"
            for (axis, _), lanes in zip(self.axes, self.lanes)
        }


def make_topology(
    hardware: Hardware,
    axes: MeshAxes,
    networks: Mapping[str, str] | None = None,
    shape: Sequence[int] | None = None,
) -> Topology:
    """Place the axes of a mesh on the networks of a chip.

    Args:
        hardware: The chip and its networks.
        axes: The name and size of every mesh axis, the outermost first.
        networks: The networks of some axes; all others are placed from the inside out.
        shape: The dimensions of the torus; by default as square as the chip's slices are.

    Raises:
        UsageError: The chip does not have a network, the mesh does not have an axis, or the sizes do not fit.

    >>> from pyshardy.costing.chips import find_hardware
    >>> make_topology(find_hardware("v5e"), (("data", 16), ("model", 16))).describe()
    {'data': 'ici 16 ring', 'model': 'ici 16 ring'}
    """
    if networks is not None and not isinstance(networks, Mapping):
        raise UsageError(_DOING, got=f"{named_type(networks)} for the networks", needed="networks by axis")
    shape = None if shape is None else as_shape(shape, _DOING)
    mesh = tuple((name, int(size)) for name, size in axes)
    chosen = _chosen(hardware, mesh, dict(networks or {}))
    inner = hardware.networks[0]
    room = [network.devices for network in hardware.networks]
    dims: list[int] = []
    if inner.kind == TORUS:
        wanted = prod(size for name, size in mesh if chosen.get(name, 0) == 0)
        dims = _torus(inner, wanted, shape, mesh)
        room[0] = prod(dims)
    elif shape is not None:
        raise UsageError(_DOING, got=f"the shape {_times(shape)} for {hardware.name}", needed="a chip with a torus")
    placed = _Placed(hardware.networks, room, list(reversed(dims)))
    lanes = {name: placed.axis(name, size, chosen.get(name)) for name, size in reversed(mesh)}
    return Topology(hardware, mesh, tuple(lanes[name] for name, _ in mesh), tuple(dims))


def _chosen(hardware: Hardware, mesh: MeshAxes, networks: Mapping[str, str]) -> dict[str, int]:
    names = [network.name for network in hardware.networks]
    sizes = dict(mesh)
    for axis, network in networks.items():
        if axis not in sizes:
            raise UsageError(_DOING, got=f"a network for the axis {axis!r}", needed=f"one of {', '.join(sizes)}")
        if network not in names:
            got = f"the network {network!r} for the axis {axis!r}"
            raise UsageError(_DOING, got=got, needed=f"one of {', '.join(names)} of {hardware.name}")
    return {axis: names.index(network) for axis, network in networks.items()}


def _torus(network: Network, wanted: int, shape: Sequence[int] | None, mesh: MeshAxes) -> list[int]:
    """The dimensions of the torus of a mesh."""
    if shape is None:
        return _square(min(wanted, network.devices or wanted), network)
    if not shape or len(shape) > network.dims or min(shape) < 1:
        got = f"the shape {_times(shape)}"
        raise UsageError(_DOING, got=got, needed=f"at most {network.dims} dimensions of size 1 or more")
    if prod(shape) > wanted or wanted % prod(shape):
        meshes = ", ".join(f"{name}={size}" for name, size in mesh)
        raise UsageError(_DOING, got=f"the shape {_times(shape)} for {meshes}", needed=f"a size that divides {wanted}")
    if network.devices is not None and prod(shape) > network.devices:
        got = f"the shape {_times(shape)}"
        raise UsageError(_DOING, got=got, needed=f"at most {network.devices} devices, which {network.name} connects")
    return list(shape)


def _square(count: int, network: Network) -> list[int]:
    """Dimensions as equal as they can be, those that close first, the largest last.

    >>> _square(512, Network("ici", "torus", 9e10, 8960, dims=3, wraps=4))
    [8, 8, 8]
    >>> _square(128, Network("ici", "torus", 9e10, 8960, dims=3, wraps=4))
    [4, 4, 8]
    """
    dims = [1] * network.dims
    largest = _primes(count)
    for factor in largest:
        dims[dims.index(min(dims))] *= factor
    return sorted(dims)


def _primes(number: int) -> list[int]:
    found, factor = [], 2
    while number > 1:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1 if factor * factor <= number else max(1, number - factor)
    return sorted(found, reverse=True)


class _Placed:
    """The free part of the networks while axes are placed."""

    def __init__(self, networks: Sequence[Network], room: list[int | None], dims: list[int]) -> None:
        self.networks, self.room, self.dims = networks, room, dims
        self.whole = tuple(dims)
        self.used = [1] * len(dims)

    def axis(self, name: str, size: int, chosen: int | None) -> tuple[Lane, ...]:
        """The parts of an axis."""
        if size < 1:
            raise UsageError(_DOING, got=f"{name}={size}", needed="a size of 1 or more")
        left, found = size, []
        for index in range(len(self.networks)) if chosen is None else (chosen,):
            if left == 1:
                break
            room = self.room[index]
            part = left if room is None else gcd(left, room)
            if part > 1:
                found += self._lanes(index, part)
                self.room[index] = None if room is None else room // part
                left //= part
        if left > 1:
            networks = [
                self.networks[index].name for index in ([chosen] if chosen is not None else range(len(self.room)))
            ]
            raise UsageError(
                _DOING,
                got=f"{name}={size}",
                needed=f"a size that fits into the free part of {', '.join(networks)}",
                hint="another order of axes, another shape, or another network for the axis",
            )
        return tuple(found)

    def _lanes(self, index: int, size: int) -> list[Lane]:
        network = self.networks[index]
        if network.kind != TORUS or index != 0:
            return [Lane(index, size)]
        found = []
        for place, dim in enumerate(self.dims):
            part = gcd(size, dim)
            if part > 1:
                is_whole = part == self.whole[place]
                found.append(Lane(index, part, is_whole and network.is_closed(part)))
                self.dims[place] //= part
                size //= part
            if size == 1:
                break
        return found


def _widest(networks: Sequence[Network], lanes: Sequence[tuple[Lane, ...]], group_size: int) -> tuple[Lane, ...]:
    """One lane along the outermost network that any axis uses."""
    used = [lane.network for parts in lanes for lane in parts]
    return (Lane(max(used, default=len(networks) - 1), group_size),) if group_size > 1 else ()


def _times(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))
