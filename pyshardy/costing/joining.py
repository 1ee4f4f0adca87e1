"""Joins independent collectives over the same devices into one, as XLA's combiners do after fusion.

A combiner visits the kernels in post-order: a depth-first walk from the results gives the order. It adds one collective
after the other to a group. It starts a new group if the group would be too large, or if the collective waits for its
own group.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import replace

from pyshardy.costing.kernels import Kernel, Kernels
from pyshardy.costing.program import PAIRS, CostKind, CostOp, OpTraffic

_SUMS = frozenset(("all_reduce", "reduce_scatter"))


def joined(block: Kernels, kinds: Collection[str], most_bytes: int) -> Kernels:
    """A block with collectives joined, and the blocks inside too.

    Args:
        block: The kernels.
        kinds: The kinds of collectives that are joined, such as "all_gather".
        most_bytes: The largest number of bytes that the results of a joined collective may have.
    """
    kernels: Sequence[Kernel] = block.kernels
    if any(kernel.inner for kernel in kernels):
        kernels = [
            kernel._replace(inner=tuple([joined(one, kinds, most_bytes) for one in kernel.inner]))
            for kernel in kernels
        ]  # fmt: skip
    block = block._replace(kernels=tuple(kernels))
    keys = [_key(kernel.root, kinds) for kernel in kernels]
    if len(set(keys) - {None}) == sum(key is not None for key in keys):
        return block
    groups = [group for group in _Grouping(kernels, keys, most_bytes).run(block.results) if len(group) > 1]
    return block._replace(kernels=tuple(_with_groups(kernels, groups))) if groups else block


def _key(op: CostOp, kinds: Collection[str]) -> Hashable:
    """What collectives must have in common; None for an op that is not joined. Gathers may differ in type."""
    traffic = op.traffic
    if traffic is None or traffic.kind not in kinds or len(op.results) != 1:
        return None
    same: Hashable = (op.kind.operands[0].dtype, op.kind.fact("body")) if traffic.kind in _SUMS else op.kind.fact(PAIRS)
    return traffic.kind, traffic.mesh, traffic.axes, traffic.group_size, same


class _Grouping:
    """Finds the groups; a set of groups is an integer with a bit for each."""

    def __init__(self, kernels: Sequence[Kernel], keys: Sequence[Hashable], most_bytes: int) -> None:
        self.kernels, self.keys, self.most_bytes = kernels, keys, most_bytes
        self.makers = {value: at for at, kernel in enumerate(kernels) for value in kernel.writes}
        self.groups: list[list[int]] = []
        self.bytes: list[int] = []
        self.before: list[int] = []  # per group, the groups for which it waits
        self.longer = 0  # the groups of more than one: these may wait for more than when they were first read
        self.last: dict[Hashable, int] = {}

    def run(self, results: Iterable[int]) -> list[list[int]]:
        """The positions of the collectives of each group, in the order in which they are visited."""
        waits = [0] * len(self.kernels)
        for at in _depth_first(self.kernels, self.makers, results):
            found = 0
            for value in self.kernels[at].needs:
                if value in self.makers:
                    found |= waits[self.makers[value]]
            if self.keys[at] is not None:
                found |= 1 << self._grouped(at, found)
            waits[at] = found
        return self.groups

    def _grouped(self, at: int, waits: int) -> int:
        """The group of a collective that waits for some groups."""
        key, traffic = self.keys[at], self.kernels[at].root.traffic
        assert traffic is not None
        group, waits = self.last.get(key), self._all_before(waits)
        if group is None or waits >> group & 1 or self.bytes[group] + traffic.bytes_after > self.most_bytes:
            self.groups.append([])
            self.bytes.append(0)
            self.before.append(0)
            group = len(self.groups) - 1
            if traffic.bytes_after <= self.most_bytes:
                self.last[key] = group
        self.groups[group].append(at)
        self.bytes[group] += traffic.bytes_after
        self.before[group] |= waits
        if len(self.groups[group]) > 1:
            self.longer |= 1 << group
        return group

    def _all_before(self, waits: int) -> int:
        """The groups for which something waits, with those for which these wait."""
        pending = waits & self.longer
        while pending:
            one = pending & -pending
            more = self.before[one.bit_length() - 1] & ~waits
            waits |= more
            pending = (pending ^ one) | (more & self.longer)
        return waits


def _depth_first(kernels: Sequence[Kernel], makers: dict[int, int], results: Iterable[int]) -> list[int]:
    """The positions of kernels in post-order of a walk from the results, each after those that it reads from."""
    found: list[int] = []
    state = [0] * len(kernels)
    starts = [makers[value] for value in results if value in makers]
    for start in (*starts, *range(len(kernels))):
        pending = [start]
        while pending:
            at = pending[-1]
            if state[at]:
                pending.pop()
                if state[at] == 1:
                    state[at] = 2
                    found.append(at)
                continue
            state[at] = 1
            before = [makers[value] for value in kernels[at].needs if value in makers]
            pending += [one for one in reversed(before) if not state[one]]
    return found


def _with_groups(kernels: Sequence[Kernel], groups: Iterable[Sequence[int]]) -> list[Kernel]:
    """The kernels with each group joined where its last part was, in an order in which they may run."""
    found: list[Kernel | None] = list(kernels)
    for group in groups:
        for at in group:
            found[at] = None
        found[max(group)] = _merged([kernels[at] for at in group])
    kept = [kernel for kernel in found if kernel is not None]
    makers = {value: at for at, kernel in enumerate(kept) for value in kernel.writes}
    return [kept[at] for at in _depth_first(kept, makers, ())]


def _together(parts: Sequence[OpTraffic]) -> OpTraffic:
    """The traffic of one collective instead of several."""
    before, after, sent = (
        sum(getattr(one, name) for one in parts) for name in ("bytes_before", "bytes_after", "sent_bytes")
    )
    return replace(parts[0], bytes_before=before, bytes_after=after, sent_bytes=sent)


def _merged(kernels: Sequence[Kernel]) -> Kernel:
    """One collective instead of several. Its origin is that of the largest; the parts keep theirs."""
    parts = tuple([kernel.root for kernel in kernels])
    traffic = [op.traffic for op in parts if op.traffic is not None]
    largest = max(parts, key=lambda op: op.traffic.sent_bytes if op.traffic else 0)
    kind = CostKind(
        largest.kind.name,
        tuple(tensor for op in parts for tensor in op.kind.operands),
        tuple(tensor for op in parts for tensor in op.kind.results),
        largest.kind.facts,
    )
    writes = tuple(value for kernel in kernels for value in kernel.writes)
    op = largest._replace(
        kind=kind,
        operands=tuple(value for op in parts for value in op.operands),
        results=writes,
        traffic=_together(traffic),
    )
    reads = tuple(dict.fromkeys(value for kernel in kernels for value in kernel.reads))
    waits = tuple(dict.fromkeys(value for kernel in kernels for value in kernel.waits))
    in_place = frozenset[int]().union(*(kernel.in_place for kernel in kernels))
    return Kernel((op,), reads, writes, in_place, waits=waits, parts=parts)
