"""Kernels, and blocks of kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pyshardy.costing.flat import BITCAST
from pyshardy.costing.program import Op


class Kernel(NamedTuple):
    """Ops that run together.

    Attributes:
        ops: The ops; the last one computes the results.
        reads: The values that the kernel reads, in order of number.
        writes: The values that it writes.
        in_place: The values among `reads` whose memory may hold the result.
        inner: For a loop or a conditional, the blocks inside.
    """

    ops: tuple[Op, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    in_place: frozenset[int]
    inner: tuple[Kernels, ...] = ()

    @property
    def root(self) -> Op:
        """The op that computes the results."""
        return self.ops[-1]


class Kernels(NamedTuple):
    """A block as kernels.

    Attributes:
        arguments: The arguments of the block.
        kernels: The kernels, in program order.
        results: The values that the block returns.
    """

    arguments: tuple[int, ...]
    kernels: tuple[Kernel, ...]
    results: tuple[int, ...]


def all_kernels(block: Kernels) -> Iterator[Kernel]:
    """The kernels of a block and of the blocks inside."""
    for kernel in block.kernels:
        yield kernel
        for inner in kernel.inner:
            yield from all_kernels(inner)


def without_bitcasts(block: Kernels, same: Mapping[int, int]) -> Kernels:
    """A block without kernels that only reshape; their readers read the operand instead.

    Args:
        block: The block.
        same: The values to read instead of some values from outside.
    """
    numbers = dict(same)
    kernels = []
    for kernel in block.kernels:
        if kernel.root.kind.name == BITCAST and len(kernel.ops) == 1:
            numbers[kernel.writes[0]] = numbers.get(kernel.reads[0], kernel.reads[0])
        else:
            kernels.append(_renamed(kernel, numbers))
    return Kernels(block.arguments, tuple(kernels), _new(block.results, numbers))


def _renamed(kernel: Kernel, numbers: Mapping[int, int]) -> Kernel:
    ops = (*kernel.ops[:-1], kernel.root._replace(operands=_new(kernel.root.operands, numbers)))
    inner = tuple([without_bitcasts(one, numbers) for one in kernel.inner])
    reads = tuple(dict.fromkeys(_new(kernel.reads, numbers)))
    return Kernel(ops, reads, kernel.writes, frozenset(_new(kernel.in_place, numbers)), inner)


def _new(values: Iterable[int], numbers: Mapping[int, int]) -> tuple[int, ...]:
    return tuple([numbers.get(value, value) for value in values])
