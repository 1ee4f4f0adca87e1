"""Joins independent all-reduces over the same devices into one, as compilers do."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from pyshardy.costing.kernels import Kernel


def joined(kernels: Sequence[Kernel], most_bytes: int) -> list[Kernel]:
    """The kernels of a block with all-reduces joined; a joined one runs where its last part ran.

    Args:
        kernels: The kernels in an order in which they may run.
        most_bytes: The largest number of bytes that a joined all-reduce may have.
    """
    found = list(kernels)
    keys = dict.fromkeys(key for key in map(_key, kernels) if key is not None)
    for key in keys:
        done: set[int] = set()
        while (group := _group(found, key, most_bytes, done)) is not None:
            done.update(found[group[0]].writes)
            if len(group) > 1:
                found = _with_group(found, group)
    return found


def _group(kernels: Sequence[Kernel], key: Hashable, most_bytes: int, done: set[int]) -> list[int] | None:
    """The first all-reduce not yet handled, with those that can be joined to it; None if there is none."""
    group: list[int] = []
    size = 0
    after: set[int] = set()
    for index, kernel in enumerate(kernels):
        waits = any(value in after for value in kernel.needs)
        if waits:
            after.update(kernel.writes)
        elif _key(kernel) == key and not done.issuperset(kernel.writes) and size + _bytes(kernel) <= most_bytes:
            group.append(index)
            size += _bytes(kernel)
            after.update(kernel.writes)
    if not group:
        first = next(
            (i for i, kernel in enumerate(kernels) if _key(kernel) == key and not done & {*kernel.writes}), None
        )
        return None if first is None else [first]
    return group


def _key(kernel: Kernel) -> Hashable:
    op = kernel.root
    if op.kind.name != "stablehlo.all_reduce" or op.traffic is None:
        return None
    return op.traffic.mesh, op.traffic.axes, op.traffic.group_size, op.kind.operands[0].dtype, op.kind.fact("body")


def _bytes(kernel: Kernel) -> int:
    return 0 if kernel.root.traffic is None else kernel.root.traffic.bytes_before


def _with_group(kernels: Sequence[Kernel], group: Sequence[int]) -> list[Kernel]:
    """The kernels with each group joined into one, where the last of the group was."""
    merged = _merge([kernels[member] for member in group])
    inside = set(group[:-1])
    return _sorted([
        merged if index == group[-1] else kernel for index, kernel in enumerate(kernels) if index not in inside
    ])  # fmt: skip


def _merge(kernels: Sequence[Kernel]) -> Kernel:
    return Kernel(
        tuple(op for kernel in kernels for op in kernel.ops),
        tuple(dict.fromkeys(value for kernel in kernels for value in kernel.reads)),
        tuple(value for kernel in kernels for value in kernel.writes),
        frozenset(),
        waits=tuple(dict.fromkeys(value for kernel in kernels for value in kernel.waits)),
    )


def _sorted(kernels: Sequence[Kernel]) -> list[Kernel]:
    """The kernels in the order given, except for those that depend on later ones."""
    makers = {value: index for index, kernel in enumerate(kernels) for value in kernel.writes}
    found: list[Kernel] = []
    state = [0] * len(kernels)
    for start in range(len(kernels)):
        pending = [start]
        while pending:
            index = pending[-1]
            if state[index] == 2:
                pending.pop()
                continue
            before = [makers[value] for value in kernels[index].needs if value in makers]
            missing = [] if state[index] == 1 else [maker for maker in before if state[maker] == 0]
            state[index] = 1
            if missing:
                pending += reversed(missing)
            else:
                state[index] = 2
                found.append(kernels[index])
                pending.pop()
    return found
