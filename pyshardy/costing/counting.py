"""Counts how often each collective of a program or of its kernels runs, as the table of traffic does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pyshardy.costing.host_memory import HOST_COPIES
from pyshardy.costing.kernels import Kernels
from pyshardy.costing.program import CostBlock, CostOp, CostProgram


class Counted(NamedTuple):
    """A collective and how often it runs.

    Attributes:
        op: The collective.
        times: How often it runs; a loop with an unknown number of rounds counts as one round.
        is_exact: Whether every loop around it makes a known number of rounds.
        parts: The collectives that are joined in it; none unless there are several.
    """

    op: CostOp
    times: int
    is_exact: bool
    parts: tuple[CostOp, ...] = ()

    @property
    def sent_bytes(self) -> int:
        """The bytes that every device sends for it in total."""
        return 0 if self.op.traffic is None else self.times * self.op.traffic.sent_bytes

    def shares(self) -> Iterator[tuple[CostOp, int, float]]:
        """The parts of a joined collective, each with how often it counts, and its share of what is sent.

        The largest counts for all of them, as one collective runs.
        """
        parts = self.parts or (self.op,)
        sizes = [max(1, Counted(op, 1, True).sent_bytes) for op in parts]
        largest = sizes.index(max(sizes))
        for at, (op, size) in enumerate(zip(parts, sizes)):
            yield op, self.times if at == largest else 0, size / sum(sizes)


def count_collectives(program: CostProgram) -> list[Counted]:
    """The collectives that run, in program order; a conditional counts as the branch that sends most."""
    return [entry for entry in _Counter(program).block(program.body) if entry.times]


def count_kernels(block: Kernels) -> list[Counted]:
    """The collectives that run among kernels, where some may be joined; otherwise as in `count_collectives`."""
    counted: list[Counted] = []
    for kernel in block.kernels:
        if kernel.root.traffic is not None and kernel.root.traffic.kind not in HOST_COPIES:
            counted.append(Counted(kernel.root, 1, True, kernel.parts))
        elif kernel.inner:
            counted += _of_regions(kernel.root, [count_kernels(one) for one in kernel.inner])
    return [entry for entry in counted if entry.times]


def _of_regions(op: CostOp, inside: list[list[Counted]]) -> list[Counted]:
    """The collectives of a loop or a conditional, from those of its regions."""
    if not op.is_loop:
        sums = [sum(entry.sent_bytes for entry in branch) for branch in inside]
        return inside[sums.index(max(sums))]
    rounds, is_exact = (1, False) if op.rounds is None else (op.rounds, True)
    checks = rounds + 1 if is_exact else rounds
    return [
        Counted(entry.op, entry.times * times, entry.is_exact and is_exact, entry.parts)
        for branch, times in ((inside[0], checks), (inside[1], rounds))
        for entry in branch
    ]


class _Counter:
    def __init__(self, program: CostProgram) -> None:
        self.program = program
        self.found: dict[int, list[Counted]] = {}

    def block(self, block: CostBlock) -> list[Counted]:
        counted: list[Counted] = []
        for op in block.ops:
            if op.traffic is not None:
                counted.append(Counted(op, 1, True))
            elif op.callee is not None:
                counted += self._function(op.callee)
            elif op.regions:
                counted += _of_regions(op, [self.block(region) for region in op.regions])
        return counted

    def _function(self, index: int) -> list[Counted]:
        if index not in self.found:
            self.found[index] = self.block(self.program.functions[index])
        return self.found[index]
