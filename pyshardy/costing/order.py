"""Orders in which the kernels of a block may run."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence

from pyshardy.costing.compilers import Order
from pyshardy.costing.kernels import Kernel


def ordered(
    kernels: Sequence[Kernel],
    order: Order,
    size: Callable[[int], int],
    kept: set[int],
    arguments: Sequence[int] = (),
) -> list[Kernel]:
    """The kernels of a block in another correct order.

    Args:
        kernels: The kernels in program order.
        order: The order to use.
        size: Gives the bytes of a value.
        kept: Values that always stay in memory.
        arguments: The arguments of the block, in order.
    """
    if order is Order.PROGRAM:
        return list(kernels)
    if order is Order.FREEING:
        fills = [kernel for kernel in kernels if not kernel.needs and kernel.root.traffic is None and not kernel.inner]
        if fills:
            ids = {id(one) for one in fills}
            others = [one for one in kernels if id(one) not in ids]
            return _with_fills(ordered(others, order, size, kept, arguments), fills)
    makers = {value: index for index, kernel in enumerate(kernels) for value in kernel.writes}
    users: list[list[int]] = [[] for _ in kernels]
    waits = [0] * len(kernels)
    for index, kernel in enumerate(kernels):
        for maker in dict.fromkeys(makers[value] for value in kernel.needs if value in makers):
            users[maker].append(index)
            waits[index] += 1
    if order is Order.BREADTH:
        return _breadth(kernels, users, waits, arguments)
    return _freeing(kernels, users, waits, size, kept)


def _with_fills(kernels: Sequence[Kernel], fills: Sequence[Kernel]) -> list[Kernel]:
    """All kernels: one that reads nothing, such as zeros, comes right before the first reader of its result."""
    makers = {value: kernel for kernel in fills for value in kernel.writes}
    left = dict.fromkeys(map(id, fills))
    found: list[Kernel] = []
    for kernel in kernels:
        for value in kernel.needs:
            maker = makers.get(value)
            if maker is not None and id(maker) in left:
                del left[id(maker)]
                found.append(maker)
        found.append(kernel)
    return [*found, *(kernel for kernel in fills if id(kernel) in left)]


def _breadth(
    kernels: Sequence[Kernel], users: list[list[int]], waits: list[int], arguments: Sequence[int]
) -> list[Kernel]:
    """The order in which kernels become ready; arguments are ready before all kernels."""
    readers: dict[int, list[int]] = {value: [] for value in arguments}
    ready: deque[int] = deque()
    for index, kernel in enumerate(kernels):
        read = [value for value in dict.fromkeys(kernel.needs) if value in readers]
        for value in read:
            readers[value].append(index)
        waits[index] += len(read)
        if not waits[index]:
            ready.append(index)

    def release(indices: Sequence[int]) -> None:
        for index in indices:
            waits[index] -= 1
            if not waits[index]:
                ready.append(index)

    for value in arguments:
        release(readers[value])
    found = []
    while ready:
        index = ready.popleft()
        found.append(kernels[index])
        release(users[index])
    return found


def _freeing(
    kernels: Sequence[Kernel], users: list[list[int]], waits: list[int], size: Callable[[int], int], kept: set[int]
) -> list[Kernel]:
    """The order of the program, but a kernel that needs no more memory than it frees runs as soon as it may.

    Thus the gradient of a weight is computed while its layer is at hand, and not with the update at the end.
    """
    uses: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    made = {value for kernel in kernels for value in kernel.writes}
    for index, kernel in enumerate(kernels):
        for value in kernel.reads:
            uses[value] = uses.get(value, 0) + 1
            readers.setdefault(value, []).append(index)

    def is_free(index: int) -> bool:
        kernel = kernels[index]
        freed = sum(size(value) for value in kernel.reads if uses[value] == 1 and value in made and value not in kept)
        return sum(size(value) for value in kernel.writes if value not in kept) <= freed

    done = [False] * len(kernels)
    found: list[Kernel] = []
    for first in range(len(kernels)):
        heap = [first]
        while heap:
            index = heapq.heappop(heap)
            if done[index]:
                continue
            done[index] = True
            found.append(kernels[index])
            ready = []
            for value in kernels[index].reads:
                uses[value] -= 1
                if uses[value] == 1:  # its last reader now frees it
                    ready += [one for one in readers[value] if not waits[one]]
            for user in users[index]:
                waits[user] -= 1
                ready += [] if waits[user] else [user]
            for one in ready:
                if not done[one] and is_free(one):
                    heapq.heappush(heap, one)
    return found
