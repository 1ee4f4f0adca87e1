"""Runs the loops of products that are cut into parts as late as possible, as XLA for TPUs does.

The partitioner cuts a product into parts if an operand is gathered or the result scattered: a loop multiplies one part
while it sends another. Such a loop runs right before its result is read. Most are gradients of weights, which the
optimizer reads at the end; until then, what they are computed from stays in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyshardy.costing.kernels import Kernel, Kernels, has_product

_MOST_PRODUCTS = 2
"""The most products of a loop of parts: one part in each direction of a ring. A loop over layers has more."""


def with_late_loops(kernels: Sequence[Kernel], ends: Mapping[int, int]) -> tuple[list[Kernel], Mapping[int, int]]:
    """Kernels with each loop of parts right before the first kernel that needs its results.

    Args:
        kernels: The kernels in an order in which they may run.
        ends: The position at which a collective beside other kernels has ended, by its own position.

    Returns:
        The kernels in their new order, and the new positions.
    """
    late: list[int] = []  # positions, from the end to the start
    for place in reversed(range(len(kernels))):
        kernel = kernels[place]
        at = len(late)
        if _is_of_parts(kernel):
            made = set(kernel.writes)
            at = next((at - n for n, one in enumerate(reversed(late)) if not made.isdisjoint(kernels[one].needs)), 0)
        late.insert(at, place)
    late.reverse()
    new = {place: at for at, place in enumerate(late)} | {len(kernels): len(kernels)}
    moved = {new[place]: max(new[place] + 1, new[end]) for place, end in ends.items()}
    return [kernels[place] for place in late], moved


def _is_of_parts(kernel: Kernel) -> bool:
    """Whether a kernel is a loop that multiplies parts and passes them on."""
    if not kernel.root.is_loop:
        return False
    body: Kernels = kernel.inner[1]
    passes = any(one.root.traffic is not None and one.root.traffic.kind == "collective_permute" for one in body.kernels)
    products = sum(has_product(one) for one in body.kernels)
    return passes and 0 < products <= _MOST_PRODUCTS and not any(one.inner for one in body.kernels)
