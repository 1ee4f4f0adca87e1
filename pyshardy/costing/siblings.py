"""Keeps what XLA for TPUs reduces and changes in one kernel: such a kernel does not overwrite what it reads."""

from __future__ import annotations

from collections.abc import Sequence

from pyshardy.costing.kernels import Kernel, Kernels

_REDUCE = "stablehlo.reduce"


def without_overwriting(block: Kernels) -> Kernels:
    """A block in which no kernel overwrites what a reduction reads too, unless one of them needs the other.

    Both become one kernel with two results.

    Args:
        block: The kernels.
    """
    kernels = [
        kernel._replace(inner=tuple([without_overwriting(one) for one in kernel.inner])) if kernel.inner else kernel
        for kernel in block.kernels
    ]
    reductions: dict[int, list[int]] = {}
    for at, kernel in enumerate(kernels):
        if any(op.kind.name == _REDUCE for op in kernel.ops):
            for value in kernel.reads:
                reductions.setdefault(value, []).append(at)
    for at, kernel in enumerate(kernels):
        beside = [
            value
            for value in kernel.in_place
            if any(one != at and not _needs(kernels, *sorted((one, at))) for one in reductions.get(value, ()))
        ]
        if beside:
            kernels[at] = kernel._replace(in_place=kernel.in_place.difference(beside))
    return block._replace(kernels=tuple(kernels))


def _needs(kernels: Sequence[Kernel], first: int, last: int) -> bool:
    """Whether a kernel needs what an earlier one computes."""
    made = set(kernels[first].writes)
    for kernel in kernels[first + 1 : last]:
        if not made.isdisjoint(kernel.needs):
            made.update(kernel.writes)
    return not made.isdisjoint(kernels[last].needs)
