"""Which ops run together as one kernel, as a compiler would fuse them.

An element-wise op, and others that read every element where it is needed, becomes a part of what uses its result; a
cheap one of every user. What contracts, sorts, sends or calls stays by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pyshardy.costing.flatten import Flat, FlatBlock, FlatOp
from pyshardy.costing.program import Kind, Op
from pyshardy.costing.work import TRANSCENDENTAL, work_of
from pyshardy.rules.opspec import op_names
from pyshardy.rules.properties import ELEMENTWISE

_LOOPS = ELEMENTWISE | frozenset(
    [
        *op_names("stablehlo.", "broadcast_in_dim concatenate dynamic_slice dynamic_update_slice gather iota pad"),
        *op_names("stablehlo.", "reduce reverse slice transpose bitcast_convert constant partition_id map"),
        *op_names("stablehlo.", "copy replica_id reduce_precision"),
        *TRANSCENDENTAL,
    ]
)
"""Ops that can be parts of a kernel that computes element by element."""
_REPEATING = frozenset(op_names("stablehlo.", "broadcast_in_dim dot_general gather"))
"""Ops that read elements of their operands several times."""
_EXPENSIVE = TRANSCENDENTAL | {"stablehlo.reduce", "stablehlo.divide", "stablehlo.remainder"}
"""Ops that are not computed twice to save memory."""
_IN_PLACE = frozenset(op_names("stablehlo.", "dynamic_update_slice scatter sort"))
_MOST_OPS = 400
"""A kernel of more ops is not made longer."""


class Kernel(NamedTuple):
    """Ops that run together.

    Attributes:
        ops: The ops; the last one makes the results.
        reads: The values that it reads, in order of number.
        writes: The values that it makes.
        in_place: The values among `reads` in whose memory it may put its result.
        inner: For a loop or a conditional, the blocks inside.
    """

    ops: tuple[Op, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    in_place: frozenset[int]
    inner: tuple[Kernels, ...] = ()

    @property
    def root(self) -> Op:
        """The op that makes the results."""
        return self.ops[-1]


class Kernels(NamedTuple):
    """A block as kernels.

    Attributes:
        arguments: The values that it is given.
        kernels: The kernels, in program order.
        results: The values that it returns.
    """

    arguments: tuple[int, ...]
    kernels: tuple[Kernel, ...]
    results: tuple[int, ...]


def fuse(flat: Flat) -> Kernels:
    """The kernels of a program."""
    return _Fuser(flat).block(flat.body)


class _Fuser:
    def __init__(self, flat: Flat) -> None:
        self.tensors, self.uniform, self.constants = flat.tensors, flat.uniform, flat.constants
        self.loops: dict[Kind, bool] = {}

    def _is_loop(self, op: Op) -> bool:
        found = self.loops.get(op.kind)
        if found is None:
            found = self.loops[op.kind] = _is_loop(op)
        return found

    def block(self, block: FlatBlock) -> Kernels:
        makers = {value: flat for flat in block.ops for value in flat.op.results}
        fused, kept = self._decide(block)
        kernels = []
        for flat in block.ops:
            if flat.op.results and flat.op.results[0] in fused and flat.op.results[0] not in kept:
                continue
            kernels.append(self._kernel(flat, makers, fused))
        return Kernels(block.arguments, tuple(kernels), block.results)

    def _decide(self, block: FlatBlock) -> tuple[set[int], set[int]]:
        """The values that their users make for themselves, and those that are kept in memory."""
        users: dict[int, list[Op]] = {}
        kept = set(block.results)
        for flat in block.ops:
            for value in dict.fromkeys(flat.op.operands):
                users.setdefault(value, []).append(flat.op)
            for region in flat.inner:
                kept.update(value for value in region.outer if not self._is_anywhere(value))
        fused: set[int] = set()
        repeated: set[int] = set()
        for flat in reversed(block.ops):
            op = flat.op
            if not self._is_loop(op):
                kept.update(op.results)
                continue
            (value,) = op.results
            consumers = users.get(value, [])
            loops = [user for user in consumers if self._is_loop(user)]
            if len(loops) < len(consumers):
                kept.add(value)
            if any(user.kind.name in _REPEATING or _is_again(user, fused, kept, repeated) for user in loops):
                repeated.add(value)
            if not consumers and value not in kept:
                kept.add(value)
            if self._joins(op, value, loops, value in kept, value in repeated):
                fused.add(value)
            else:
                kept.add(value)
        return fused, kept

    def _joins(self, op: Op, value: int, loops: list[Op], is_kept: bool, is_repeated: bool) -> bool:
        """Whether the users of a value make it for themselves."""
        if value in self.uniform or value in self.constants or op.kind.name == "stablehlo.iota":
            return True
        if not loops:
            return False
        if op.kind.name == "stablehlo.dynamic_update_slice":
            return False
        if op.kind.name in _EXPENSIVE and (len(loops) > 1 or is_kept or is_repeated):
            return False
        if is_kept:
            return self._is_unary(op)
        return True

    def _is_unary(self, op: Op) -> bool:
        """Whether it reads one array, beside single numbers."""
        arrays = [value for value in op.operands if value not in self.uniform and self.tensors[value].elements > 1]
        return len(arrays) <= 1 and op.kind.name not in ("stablehlo.reduce", "stablehlo.concatenate")

    def _kernel(self, flat: FlatOp, makers: Mapping[int, FlatOp], fused: set[int]) -> Kernel:
        op = flat.op
        inner = tuple([self.block(region) for region in flat.inner])
        outer = [value for region in flat.inner for value in region.outer if not self._is_anywhere(value)]
        if inner or not self._is_loop(op):
            reads = dict.fromkeys((*self._from_here(op.operands, makers), *outer))
            in_place = frozenset(op.operands[:1] if op.kind.name in _IN_PLACE else ())
            return Kernel((op,), tuple(reads), op.results, in_place, inner)
        ops, read, shared = self._gather(op, makers, fused)
        return Kernel(tuple(ops), tuple(read), op.results, frozenset(shared))

    def _gather(self, root: Op, makers: Mapping[int, FlatOp], fused: set[int]) -> tuple[list[Op], list[int], set[int]]:
        """The ops that run with one, producers first, and what they read."""
        ops: dict[int, Op] = {}
        reads: dict[int, bool] = {}
        size = self.tensors[root.results[0]].bytes
        pending: list[tuple[Op, bool]] = [(root, True)]
        seen: dict[int, bool] = {root.results[0]: True}
        while pending:
            op, is_pointwise = pending.pop()
            ops[op.results[0]] = op
            for place, value in enumerate(op.operands):
                inner = is_pointwise and (
                    op.kind.name in ELEMENTWISE or (op.kind.name == "stablehlo.dynamic_update_slice" and place == 0)
                )
                if value in fused and value in makers and len(ops) < _MOST_OPS:
                    if value not in seen:
                        seen[value] = inner
                        pending.append((makers[value].op, inner))
                else:
                    reads[value] = reads.get(value, True) and inner
        in_place = {value for value, flag in reads.items() if flag and self.tensors[value].bytes == size}
        order = [op for op in reversed(ops.values()) if op is not root]
        return [*order, root], self._from_here(reads, makers), in_place

    def _is_anywhere(self, value: int) -> bool:
        """Whether a block makes a value for itself instead of taking it from around it."""
        return value in self.uniform or value in self.constants

    def _from_here(self, values: Iterable[int], makers: Mapping[int, FlatOp]) -> list[int]:
        return [value for value in values if value in makers or not self._is_anywhere(value)]


def _is_loop(op: Op) -> bool:
    """Whether an op can be a part of a kernel that computes element by element; an outer product can."""
    if op.kind.name == "stablehlo.dot_general" and len(op.results) == 1:
        return work_of(op.kind).flops <= 2 * op.kind.results[0].elements
    return op.kind.name in _LOOPS and len(op.results) == 1


def _is_again(user: Op, fused: set[int], kept: set[int], repeated: set[int]) -> bool:
    """Whether a user becomes part of something that reads elements several times."""
    (value,) = user.results
    return value in fused and value in repeated


def all_kernels(block: Kernels) -> Iterator[Kernel]:
    """The kernels of a block and of the blocks inside."""
    for kernel in block.kernels:
        yield kernel
        for inner in kernel.inner:
            yield from all_kernels(inner)


def can_fuse(name: str) -> bool:
    """Whether an op of this name can be a part of a kernel that computes element by element.

    >>> can_fuse("stablehlo.add"), can_fuse("stablehlo.sort")
    (True, False)
    """
    return name in _LOOPS


def is_expensive(name: str) -> bool:
    """Whether an op of this name is not computed twice to save memory.

    >>> is_expensive("stablehlo.exponential"), is_expensive("stablehlo.add")
    (True, False)
    """
    return name in _EXPENSIVE
