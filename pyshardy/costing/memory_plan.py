"""The memory of a block, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pyshardy.costing.kernels import Kernel


class Buffer(NamedTuple):
    """Memory that holds one value after another.

    Attributes:
        values: The values, in order of time.
        bytes: The size of the buffer.
        start: The position of the first kernel during which it is alive.
        end: The position of the last kernel during which it is alive.
    """

    values: tuple[int, ...]
    bytes: int
    start: int
    end: int


class MemoryPlan(NamedTuple):
    """The memory of one block.

    Attributes:
        kernels: The kernels in the order in which they run.
        buffers: The buffers other than those of arguments and results.
        held: The bytes of buffers at every kernel, with those of its inner blocks.
        inner: The plans of inner blocks, by position of the kernel.
        packed: For the main function, the bytes of all buffers with the holes between them, if the compiler packs them.
    """

    kernels: tuple[Kernel, ...]
    buffers: tuple[Buffer, ...]
    held: tuple[int, ...]
    inner: Mapping[int, tuple[MemoryPlan, ...]]
    packed: int | None = None

    @property
    def peak(self) -> int:
        """The peak of the buffers, with holes between them where these count."""
        return max(self.held, default=0) if self.packed is None else self.packed

    @property
    def peak_at(self) -> int:
        """The position of the first kernel at the peak."""
        return self.held.index(max(self.held)) if self.held else 0
