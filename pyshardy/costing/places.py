"""Sums the cost of a program by the user's lines, or by the scopes of its ops."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from pyshardy.core.scopes import scope_path
from pyshardy.costing.kernels import Kernel, Kernels
from pyshardy.costing.launches import Launches
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
    """

    scope: str | None
    source: SourceLine | None
    kernel_seconds: float
    collective_seconds: float
    flops: float
    bytes: float

    @property
    def seconds(self) -> float:
        """The time of kernels and collectives."""
        return self.kernel_seconds + self.collective_seconds


def costs_by(launches: Launches, by: By) -> tuple[PlaceCost, ...]:
    """The cost of one run of a program by scope or line, the largest time first.

    The times add up to those of all kernels and collectives, as the estimate has them without overlap.

    Args:
        launches: The kernels of the program.
        by: What to sum by.
    """
    reader = _Reader(by, launches)
    sums: dict[tuple[str | None, SourceLine | None], list[float]] = {}
    for kernel, times in reader.run(launches.block, 1):
        found = sums.setdefault(reader.key(kernel.root.place), [0.0] * 4)
        for place, one in enumerate(reader.price(kernel)):
            found[place] += times * one
    rows = (PlaceCost(*key, *found) for key, found in sums.items())
    return tuple(sorted((row for row in rows if row.seconds), key=lambda row: -row.seconds))


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

    def price(self, kernel: Kernel) -> tuple[float, float, float, float]:
        """The seconds of kernels and of collectives, the FLOPs and the bytes of one run."""
        op = kernel.root
        if op.traffic is not None:
            return 0.0, self.seconds_of(op.traffic), self.roofline.work(op.kind).flops, 0.0
        found = self.roofline.price(kernel)
        return found.seconds, 0.0, found.flops, found.bytes

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
