"""Chips and the networks between them, as validated data; the files of known chips are in `chips/`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pyshardy.core.text import named_type
from pyshardy.errors import UsageError

TORUS, SWITCH = "torus", "switch"
_ADDING = "describing hardware"


@dataclass(frozen=True, slots=True)
class Network:
    """A network that connects devices.

    Attributes:
        name: The name, such as "nvlink".
        kind: "torus", where every device has links to its neighbours, or "switch", where every device reaches all.
        bytes_per_s: The bandwidth of a device in one direction: over one link of a torus, or into the switch.
        devices: The number of devices that one such network connects; None for any number.
        latency_s: The time of a message for each hop of a torus, or each step through a switch.
        efficiency: The fraction of the bandwidth that collectives reach.
        dims: The number of dimensions of a torus; 0 for a switch.
        wraps: A dimension of a torus is closed if its size is a multiple of this number; 0 for never.
        wraps_only: Whether a dimension is closed only if its size is exactly `wraps`.
        reduces: The speed-up of all-reduces in a switch that adds up numbers, over a ring; 1 for no such switch.
        straggling: The fraction of a step that devices wait for the slowest one. It counts once for every doubling of
            the number of groups that this network connects.
        ramp_s: The time constant until full bandwidth: a message of t seconds takes t + sqrt(t * ramp_s).
    """

    name: str
    kind: str
    bytes_per_s: float
    devices: int | None = None
    latency_s: float = 0.0
    efficiency: float = 1.0
    dims: int = 0
    wraps: int = 0
    wraps_only: bool = False
    reduces: float = 1.0
    ramp_s: float = 0.0
    straggling: float = 0.0

    def __post_init__(self) -> None:
        where = f"the network {self.name!r}"
        _check_texts(where, name=self.name)
        if self.kind not in (TORUS, SWITCH):
            raise UsageError(_ADDING, where=where, got=f"the kind {self.kind!r}", needed=f"{TORUS!r} or {SWITCH!r}")
        check_positive(where, bytes_per_s=self.bytes_per_s, efficiency=self.efficiency, reduces=self.reduces)
        _check_fraction(where, efficiency=self.efficiency)
        if self.devices is not None:
            _check_whole(where, 1, devices=self.devices)
        _check_whole(where, 0, dims=self.dims, wraps=self.wraps)
        _check_flags(where, wraps_only=self.wraps_only)
        check_times(where, latency_s=self.latency_s, ramp_s=self.ramp_s, straggling=self.straggling)
        if (self.kind == TORUS) != (self.dims > 0):
            needed = "1 or more for a torus, 0 for a switch"
            raise UsageError(_ADDING, where=where, got=f"dims = {self.dims} for a {self.kind}", needed=needed)

    def is_closed(self, size: int) -> bool:
        """Whether a dimension of this size ends where it starts.

        >>> Network("ici", "torus", 9e10, dims=3, wraps=4).is_closed(8)
        True
        """
        if not self.wraps or size <= 2:
            return False
        return size == self.wraps if self.wraps_only else size % self.wraps == 0


@dataclass(frozen=True, slots=True)
class Measured:
    """Published measurements of a collective.

    Attributes:
        kind: The collective, such as "all_reduce".
        devices: The number of devices that took part.
        bytes: The sizes of the whole array.
        seconds: The time for each size.
    """

    kind: str
    devices: int
    bytes: tuple[float, ...]
    seconds: tuple[float, ...]

    def __post_init__(self) -> None:
        where = f"the measurement of {self.kind} on {self.devices} devices"
        _check_texts(where, kind=self.kind)
        _check_whole(where, 1, devices=self.devices)
        for name in ("bytes", "seconds"):
            numbers = field_entries(where, name, getattr(self, name), "numbers")
            check_positive(where, **{f"{name}[{place}]": number for place, number in enumerate(numbers)})
            object.__setattr__(self, name, numbers)
        if len(self.bytes) != len(self.seconds) or len(self.bytes) < 2:
            got = f"{len(self.bytes)} sizes and {len(self.seconds)} times"
            raise UsageError(_ADDING, where=where, got=got, needed="a time for every size, for two or more")
        if any(a >= b for a, b in zip(self.bytes, self.bytes[1:])):
            needed = "the sizes in ascending order"
            raise UsageError(_ADDING, where=where, got=f"sizes {self.bytes} and times {self.seconds}", needed=needed)

    def at(self, size: float) -> float:
        """The seconds for another size: between two sizes by a power law, beyond the last in proportion.

        >>> Measured("all_gather", 2, (1e6, 4e6), (1e-4, 2e-4)).at(2e6) * 1e6
        141.4...
        """
        if size <= self.bytes[0]:
            return self.seconds[0]
        if size >= self.bytes[-1]:
            return self.seconds[-1] * size / self.bytes[-1]
        place = next(index for index, known in enumerate(self.bytes) if known > size)
        (x0, x1), (y0, y1) = self.bytes[place - 1 : place + 1], self.seconds[place - 1 : place + 1]
        return y0 * math.exp(math.log(size / x0) / math.log(x1 / x0) * math.log(y1 / y0))


@dataclass(frozen=True, slots=True)
class Hardware:
    """A chip and its networks.

    Attributes:
        name: The name of the chip.
        memory_bytes: The memory of one device.
        memory_bytes_per_s: The bandwidth of that memory.
        flops_per_s: The peak rate of matrix products, by element type: pairs, or a mapping.
        vector_flops_per_s: The peak rate of other arithmetic; None if unknown, and then it is never the limit.
        networks: The networks, the innermost one first.
        matrix_efficiency: The fraction of the peak that products reach.
        memory_efficiency: The fraction of the memory's bandwidth that kernels reach.
        product_memory_efficiency: The same for products, such as those with a vector; that of other kernels if None.
        kernel_floor_s: The minimum time of a kernel.
        sort_tile_bytes: The bytes that a sort keeps near a multiprocessor: longer rows are sorted in several passes
            through memory. None if it is unknown, and then a sort takes one pass.
        scan_passes: How often cumulative sums move their array through memory.
        solver_efficiency: The fraction of the rate of vectors that decompositions of matrices reach.
        host_bytes_per_s: The rate of copies to the memory of the host, one way; None if unknown: they take no time.
        dispatch_s: The time that a host takes to start a program; a loop of shorter steps takes this long.
        launch_s: The time to start a collective.
        merges_kernels: Whether its compiler makes one kernel of several that run over the same elements.
        fuses_into_products: Whether its compiler lets products compute elementwise ops before and after them.
        overlaps_products: Whether its compiler cuts products and neighbouring collectives into pieces that overlap.
        part_flops_per_byte: Its partitioner makes a loop of permutes of a product beside a gather or a scatter if the
            product has as many operations for each byte of the part of one device; None if it never does.
        measured: Measurements of collectives.
        sources: The source of every number, by the name of the field.
    """

    name: str
    memory_bytes: float
    memory_bytes_per_s: float
    flops_per_s: tuple[tuple[str, float], ...]
    networks: tuple[Network, ...]
    vector_flops_per_s: float | None = None
    matrix_efficiency: float = 0.7
    memory_efficiency: float = 0.7
    product_memory_efficiency: float | None = None
    kernel_floor_s: float = 0.0
    sort_tile_bytes: float | None = None
    scan_passes: float = 2.0
    solver_efficiency: float = 1.0
    host_bytes_per_s: float | None = None
    dispatch_s: float = 0.0
    launch_s: float = 0.0
    merges_kernels: bool = False
    fuses_into_products: bool = False
    overlaps_products: bool = False
    part_flops_per_byte: float | None = None
    measured: tuple[Measured, ...] = ()
    sources: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        where = f"the hardware {self.name!r}"
        self._check_lists(where)
        _check_texts(where, name=self.name, **{f"sources.{name}": text for name, text in self.sources})
        for name in ("vector_flops_per_s", "host_bytes_per_s", "part_flops_per_byte"):
            if getattr(self, name) is not None:
                check_positive(where, **{name: getattr(self, name)})
        for name in ("overlaps_products", "merges_kernels", "fuses_into_products"):
            _check_flags(where, **{name: getattr(self, name)})
        check_positive(where, memory_bytes=self.memory_bytes, memory_bytes_per_s=self.memory_bytes_per_s)
        check_positive(where, **{f"flops_per_s.{name}": value for name, value in self.flops_per_s})
        _check_fraction(where, matrix_efficiency=self.matrix_efficiency, memory_efficiency=self.memory_efficiency)
        _check_fraction(where, solver_efficiency=self.solver_efficiency)
        check_positive(where, scan_passes=self.scan_passes)
        if self.sort_tile_bytes is not None:
            check_positive(where, sort_tile_bytes=self.sort_tile_bytes)
        if self.product_memory_efficiency is not None:
            _check_fraction(where, product_memory_efficiency=self.product_memory_efficiency)
        times = {"kernel_floor_s": self.kernel_floor_s, "dispatch_s": self.dispatch_s, "launch_s": self.launch_s}
        check_times(where, **times)
        if not self.flops_per_s or not self.networks:
            got = "no flops_per_s" if not self.flops_per_s else "no networks"
            raise UsageError(_ADDING, where=where, got=got, needed="at least one of each")
        sizes = [network.devices for network in self.networks]
        if None in sizes[:-1]:
            needed = "a number of devices for every network but the last"
            raise UsageError(_ADDING, where=where, got="an inner network without a number of devices", needed=needed)

    def _check_lists(self, where: str) -> None:
        """Check the fields with several entries, and keep them as tuples."""
        for name in ("flops_per_s", "sources"):
            object.__setattr__(self, name, _as_pairs(where, name, getattr(self, name)))
        for name, kind in (("networks", Network), ("measured", Measured)):
            entries = field_entries(where, name, getattr(self, name), f"{kind.__name__} objects")
            for entry in entries:
                if not isinstance(entry, kind):
                    needed = f"{kind.__name__} objects"
                    raise UsageError(_ADDING, where=where, got=f"{named_type(entry)} in {name}", needed=needed)
            object.__setattr__(self, name, entries)

    def bytes_per_s(self, is_product: bool) -> float:
        """The rate at which kernels read and write memory.

        Args:
            is_product: Whether the kernel is a product.
        """
        of_products = self.product_memory_efficiency if is_product else None
        return self.memory_bytes_per_s * (self.memory_efficiency if of_products is None else of_products)

    def matrix_flops_per_s(self, dtype: str) -> float:
        """The peak rate of matrix products of an element type.

        A type that is not in the table has the rate of another type of its width. If there is none, it has half the
        rate of the next narrower type.
        """
        known = dict(self.flops_per_s)
        if dtype in known:
            return known[dtype]
        width = _width(dtype)
        as_wide = [value for name, value in self.flops_per_s if _width(name) == width]
        if as_wide:
            return as_wide[0]
        narrower = [(_width(name), value) for name, value in self.flops_per_s if _width(name) < width]
        if narrower:
            found = max(narrower)
            return found[1] * found[0] / width
        return min((_width(name), value) for name, value in self.flops_per_s)[1]


def _width(dtype: str) -> int:
    """The number of bits of an element; 32 if the name does not say.

    >>> _width("bf16"), _width("complex<f32>"), _width("i1"), _width("f8E4M3FN")
    (16, 64, 1, 8)
    """
    if dtype.startswith("complex<"):
        return 2 * _width(dtype[len("complex<") : -1])
    digits = ""
    for letter in dtype.lstrip("abcdefghijklmnopqrstuvwxyz"):
        if not letter.isdigit():
            break
        digits += letter
    return int(digits) if digits else 32


def field_entries(where: str, name: str, values: Any, needed: str) -> tuple[Any, ...]:
    """The entries of a field; text and what has no entries is refused."""
    if not isinstance(values, (str, bytes)):
        with suppress(TypeError):
            return tuple(values)
    raise UsageError(_ADDING, where=where, got=f"{named_type(values)} as {name}", needed=needed)


def _as_pairs(where: str, name: str, given: Any) -> tuple[tuple[str, Any], ...]:
    """The entries of a table by name: pairs, or a mapping."""
    needed = "pairs of a name and a value, or a mapping"
    entries = field_entries(where, name, given.items() if isinstance(given, Mapping) else given, needed)
    for entry in entries:
        if not isinstance(entry, (tuple, list)) or len(entry) != 2 or not isinstance(entry[0], str):
            raise UsageError(_ADDING, where=where, got=f"{entry!r} in {name}", needed=needed)
    return tuple((key, value) for key, value in entries)


def _check_texts(where: str, **texts: Any) -> None:
    for name, value in texts.items():
        if not isinstance(value, str):
            raise UsageError(_ADDING, where=where, got=f"{named_type(value)} as {name}", needed="text")


def _check_whole(where: str, least: int, **numbers: Any) -> None:
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise UsageError(_ADDING, where=where, got=f"{name} = {value!r}", needed=f"a whole number from {least}")


def _check_flags(where: str, **flags: Any) -> None:
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise UsageError(_ADDING, where=where, got=f"{name} = {value!r}", needed="True or False")


def check_positive(where: str, **numbers: float) -> None:
    """Refuse fields that are not positive numbers."""
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
            raise UsageError(_ADDING, where=where, got=f"{name} = {value!r}", needed="a positive number")


def check_times(where: str, **numbers: float) -> None:
    """Refuse fields that are not numbers from 0 on."""
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
            raise UsageError(_ADDING, where=where, got=f"{name} = {value!r}", needed="a number from 0")


def _check_fraction(where: str, **numbers: float) -> None:
    for name, value in numbers.items():
        if not isinstance(value, (int, float)) or not 0 < value <= 1:
            raise UsageError(_ADDING, where=where, got=f"{name} = {value!r}", needed="a number over 0, at most 1")
