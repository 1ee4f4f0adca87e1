"""Kernels, and blocks of kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pyshardy.costing.flat import BARRIER, BITCAST
from pyshardy.costing.program import CostOp
from pyshardy.costing.work import is_product
from pyshardy.rules.opspec import op_names

UPDATING: Final = frozenset(op_names("stablehlo.", "dynamic_update_slice scatter sort"))
"""Ops that write their result where their first operand was."""


class Kernel(NamedTuple):
    """Ops that run together.

    Attributes:
        ops: The ops; the last one computes the results.
        reads: The values that the kernel reads, in order of number.
        writes: The values that it writes.
        in_place: The values among `reads` whose memory may hold the result.
        inner: For a loop or a conditional, the blocks inside.
        waits: Values that the kernel does not read, but that are computed before it runs.
        parts: The collectives that are joined in it; none unless there are several.
    """

    ops: tuple[CostOp, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    in_place: frozenset[int]
    inner: tuple[Kernels, ...] = ()
    waits: tuple[int, ...] = ()
    parts: tuple[CostOp, ...] = ()

    @property
    def root(self) -> CostOp:
        """The op that computes the results."""
        return self.ops[-1]

    @property
    def needs(self) -> tuple[int, ...]:
        """The values that are computed before the kernel runs."""
        return (*self.reads, *self.waits) if self.waits else self.reads


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
    """A block without kernels that only reshape, and without barriers; their readers read the operand instead.

    Args:
        block: The block.
        same: The values to read instead of some values from outside.
    """
    numbers = dict(same)
    waits: dict[int, tuple[int, ...]] = {}
    kernels = []
    for kernel in block.kernels:
        if kernel.root.kind.name == BARRIER:
            numbers.update(
                (after, numbers.get(before, before)) for before, after in zip(kernel.root.operands, kernel.writes)
            )
            waits.update((value, _new(kernel.reads, numbers)) for value in kernel.writes)
        elif kernel.root.kind.name == BITCAST and len(kernel.ops) == 1:
            (source,), (value,) = kernel.reads, kernel.writes
            numbers[value] = numbers.get(source, source)
            if source in waits:
                waits[value] = waits[source]
        else:
            awaited = dict.fromkeys(one for value in kernel.reads if value in waits for one in waits[value])
            kernels.append(_renamed(kernel, numbers)._replace(waits=tuple(awaited)))
    return Kernels(block.arguments, tuple(kernels), _new(block.results, numbers))


def _renamed(kernel: Kernel, numbers: Mapping[int, int]) -> Kernel:
    ops = (*kernel.ops[:-1], kernel.root._replace(operands=_new(kernel.root.operands, numbers)))
    inner = tuple([without_bitcasts(one, numbers) for one in kernel.inner])
    reads = tuple(dict.fromkeys(_new(kernel.reads, numbers)))
    return Kernel(ops, reads, kernel.writes, frozenset(_new(kernel.in_place, numbers)), inner)


def _new(values: Iterable[int], numbers: Mapping[int, int]) -> tuple[int, ...]:
    return tuple([numbers.get(value, value) for value in values])


def has_product(kernel: Kernel) -> bool:
    """Whether a kernel holds a product of matrices, or a convolution."""
    return any(is_product(op.kind) for op in kernel.ops)


class Before:
    """The kernels that must run before each kernel, as one bit per kernel.

    Args:
        kernels: The kernels of a block in an order in which they may run.
    """

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self.kernels = kernels
        self.makers = {value: index for index, kernel in enumerate(kernels) for value in kernel.writes}
        self.readers: dict[int, list[int]] = {}
        self._masks: list[int] = []
        for index, kernel in enumerate(kernels):
            mask = 0
            for value in kernel.reads:
                self.readers.setdefault(value, []).append(index)
            for value in kernel.needs:
                maker = self.makers.get(value)
                if maker is not None:
                    mask |= self._masks[maker] | 1 << maker
            self._masks.append(mask)

    def must(self, first: int, second: int) -> bool:
        """Whether one kernel must run before another one, by their positions."""
        return bool(self._masks[second] >> first & 1)
