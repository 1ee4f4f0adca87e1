"""The single heap in which XLA places all buffers of a program, with those of loops and branches.

Several results, the state of a loop and the arguments of a branch need a table of pointers. Each table has memory of
its own for the whole program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyshardy.costing.kernels import Kernels
from pyshardy.costing.packing import Lifetime, packed_bytes

if TYPE_CHECKING:
    from pyshardy.costing.memory_plan import Buffer, MemoryPlan

_POINTER_BYTES = 8


def heap_bytes(plan: MemoryPlan, sizes: Sequence[int], alignment: int) -> int:
    """The memory of all buffers and tables.

    Args:
        plan: The memory plan of the main function.
        sizes: The bytes of every value.
        alignment: The number of bytes to which the start of a buffer is aligned.
    """
    times = _Times(sizes)
    times.plan(plan)
    tables = [_POINTER_BYTES * count for count in _tables(plan) if count]
    held = packed_bytes(times.found, alignment)
    for table in tables:
        held = -(-held // alignment) * alignment + table
    return held


class _Times:
    """Lifetimes of buffers on one clock for the whole program."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes, self.clock = sizes, 0
        self.found: list[Lifetime] = []

    def plan(self, plan: MemoryPlan) -> None:
        starts, ends = [], []
        for at in range(len(plan.kernels)):
            self.clock += 1
            starts.append(self.clock)
            for inner in plan.inner.get(at, ()):
                self.plan(inner)
                self.clock += 1
            ends.append(self.clock)
        starts.append(self.clock)
        ends.append(self.clock)
        self.found += [Lifetime(self._size(one), starts[one.start], ends[one.end]) for one in plan.buffers]

    def _size(self, buffer: Buffer) -> int:
        return self.sizes[buffer.values[-1]]


def _tables(plan: MemoryPlan) -> Iterator[int]:
    """The number of pointers in every table."""
    for at, kernel in enumerate(plan.kernels):
        if kernel.root.is_loop:
            yield len(kernel.reads)
        elif kernel.inner:
            yield len(kernel.writes)
            yield from (len(_outer(block)) for block in kernel.inner)
        elif len(kernel.writes) > 1:
            yield len(kernel.writes)
        for block in plan.inner.get(at, ()):
            yield from _tables(block)


def _outer(block: Kernels) -> set[int]:
    """The values from outside that a block uses."""
    read = {*block.results}.union(*(kernel.reads for kernel in block.kernels))
    return read.difference(block.arguments, *(kernel.writes for kernel in block.kernels))
