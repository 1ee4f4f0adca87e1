"""Sums the cost of a program by the user's lines, or by the scopes of its ops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, NamedTuple

from pyshardy.core.scopes import scope_path
from pyshardy.costing.counting import Counted
from pyshardy.costing.kernels import Kernel, Kernels
from pyshardy.costing.launches import Launches
from pyshardy.costing.peak import LiveValue
from pyshardy.costing.program import OpOrigin, SourceLine


class By(Enum):
    """What costs are summed by.

    Attributes:
        SCOPE: The user's scopes; modules of flax and equinox are scopes.
        LINE: The user's source lines.
    """

    SCOPE = "scope"
    LINE = "line"


class PlaceCost(NamedTuple):
    """The cost of all ops of one scope or line.

    Attributes:
        scope: The scope, such as "decoder/mlp"; None for ops outside, and where costs are summed by line.
        source: The line; None for ops without one, and where costs are summed by scope.
        kernel_seconds: The time of its kernels; what a kernel computes for other lines counts where it ends.
        collective_seconds: The time of its collectives, whether or not kernels hide it.
        flops: The floating-point operations.
        bytes: The bytes that its kernels read and write.
        sent_bytes: The bytes that a device sends in its collectives.
        peak_bytes: The bytes of its values that are in memory at the peak, without arguments and results.
    """

    scope: str | None
    source: SourceLine | None
    kernel_seconds: float
    collective_seconds: float
    flops: float
    bytes: float
    sent_bytes: float
    peak_bytes: int

    @property
    def seconds(self) -> float:
        """The time of kernels and collectives."""
        return self.kernel_seconds + self.collective_seconds

    def to_json(self) -> dict[str, Any]:
        """The row as JSON-ready data."""
        return self._asdict()


def costs_by(launches: Launches, by: By, live: Sequence[LiveValue] = ()) -> tuple[PlaceCost, ...]:
    """The cost of one run of a program by scope or line, the largest time first.

    The times add up to those of all kernels and collectives, as the estimate has them without overlap.

    Args:
        launches: The kernels of the program.
        by: What to sum by.
        live: The values that are alive at the peak.
    """
    reader = _Reader(by, launches)
    held: dict[tuple[str | None, SourceLine | None], int] = {}
    for value in live:
        if not value.is_fixed:
            scope = scope_path(value.name) if by is By.SCOPE else None
            place = scope, None if by is By.SCOPE else _line(value.source)
            held[place] = held.get(place, 0) + value.bytes
    sums: dict[tuple[str | None, SourceLine | None], list[float]] = {}
    for kernel, times in reader.run(launches.block, 1):
        for op, _, share in Counted(kernel.root, 1, True, kernel.parts).shares():
            found = sums.setdefault(reader.key(op.place), [0.0] * 5)
            for at, one in enumerate(reader.price(kernel)):
                found[at] += times * share * one
    for key in held:
        sums.setdefault(key, [0.0] * 5)
    rows = (
        PlaceCost(*key, kernels, collectives, flops, moved, sent, held.get(key, 0))
        for key, (kernels, collectives, flops, moved, sent) in sums.items()
    )
    return tuple(sorted((row for row in rows if row.seconds or row.peak_bytes), key=lambda row: -row.seconds))


def launched(launches: Launches) -> Iterator[tuple[Kernel, int]]:
    """The kernels of one run, and how often each runs; of a conditional, those of the slowest branch.

    Args:
        launches: The kernels of the program.
    """
    return _Reader(By.SCOPE, launches).run(launches.block, 1)


class _Reader:
    def __init__(self, by: By, launches: Launches) -> None:
        self.by, self.roofline, self.seconds_of = by, launches.roofline, launches.seconds_of

    def key(self, place: OpOrigin | None) -> tuple[str | None, SourceLine | None]:
        if place is None:
            return None, None
        return (scope_path(place.scope), None) if self.by is By.SCOPE else (None, _line(place.source))

    def price(self, kernel: Kernel) -> tuple[float, float, float, float, float]:
        """The seconds of kernels and of collectives, the FLOPs, the bytes, and the bytes sent, of one run."""
        op = kernel.root
        if op.traffic is not None:
            return 0.0, self.seconds_of(op.traffic), self.roofline.work(op.kind).flops, 0.0, op.traffic.sent_bytes
        found = self.roofline.price(kernel)
        return found.seconds, 0.0, found.flops, found.bytes, 0.0

    def run(self, block: Kernels, times: int) -> Iterator[tuple[Kernel, int]]:
        """The kernels that run, and how often; of a conditional, those of the slowest branch."""
        for kernel in block.kernels:
            if not kernel.inner:
                yield kernel, times
            elif kernel.root.is_loop:
                rounds = 1 if kernel.root.rounds is None else kernel.root.rounds
                yield from self.run(kernel.inner[0], times * (rounds + 1))
                yield from self.run(kernel.inner[1], times * rounds)
            else:
                branches = [list(self.run(one, times)) for one in kernel.inner]
                yield from max(branches, key=self._seconds)

    def _seconds(self, branch: list[tuple[Kernel, int]]) -> float:
        return sum(times * sum(self.price(kernel)[:2]) for kernel, times in branch)


def _line(source: SourceLine | None) -> SourceLine | None:
    return None if source is None else (source[0], source[1], 0)
