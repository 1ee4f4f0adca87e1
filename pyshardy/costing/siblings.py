"""Keeps what XLA for TPUs reduces and changes in one kernel: such a kernel does not overwrite what it reads."""

from __future__ import annotations

from pyshardy.costing.kernels import Before, Kernels

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
    if not any(value in reductions for kernel in kernels for value in kernel.in_place):
        return block._replace(kernels=tuple(kernels))
    before = Before(kernels)
    for at, kernel in enumerate(kernels):
        beside = [
            value
            for value in kernel.in_place
            if any(one != at and not before.must(*sorted((one, at))) for one in reductions.get(value, ()))
        ]
        if beside:
            kernels[at] = kernel._replace(in_place=kernel.in_place.difference(beside))
    return block._replace(kernels=tuple(kernels))
