"""Decides which values of a block are kept in memory, and which kernels compute the others for themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pyshardy.costing.flat import FlatBlock, FlatOp
from pyshardy.costing.program import CostOp
from pyshardy.rules.opspec import op_names
from pyshardy.rules.properties import ELEMENTWISE

_REPEATING = frozenset(op_names("stablehlo.", "broadcast_in_dim dot_general dynamic_slice gather"))
"""Ops that read elements of their operands several times, or are assumed to."""


@dataclass(slots=True)
class Reader:
    """How a kernel reads a value: at the positions of which ops, and whether it reads some elements again."""

    ops: set[int] = field(default_factory=set)
    is_repeated: bool = False


class Choice:
    """The values of a block that are kept, and the kernels that compute the others; users are decided first.

    A kernel that needs the elements of an op at several places computes the op for each of them. Elementwise ops pass
    on the places of their users; other ops have one place for each place that needs them.
    """

    def __init__(self, results: Iterable[int]) -> None:
        self.kept: set[int] = set(results)
        self.users: dict[int, list[CostOp]] = {}
        self.readers: dict[int, dict[int, Reader]] = {}
        self.members: dict[int, set[int]] = {}
        self.library: set[int] = set()
        self.targets: dict[int, int] = {}
        self.spread: set[int] = set()
        self.visited: dict[int, int] = {}
        self._places: dict[tuple[int, int], int] = {}
        self._makers: dict[int, FlatOp] = {}
        self._before: dict[int, int] = {}
        self._bits: dict[int, int] = {}

    def find_ancestors(self, block: FlatBlock) -> None:
        """Find the ops that every value depends on, as a bit for each op."""
        for index, flat in enumerate(block.ops):
            mask = 1 << index
            for value in (*flat.op.operands, *(outer for region in flat.inner for outer in region.outer)):
                mask |= self._before.get(value, 0)
            for value in flat.op.results:
                self._makers[value], self._before[value], self._bits[value] = flat, mask, 1 << index

    def find_order(self, block: FlatBlock) -> None:
        """Find the order in which a walk from the results visits values, operands first."""
        makers = {value: flat for flat in block.ops for value in flat.op.results}
        roots = [flat.op.results[0] for flat in block.ops if flat.op.results and flat.op.results[0] not in self.users]
        pending = [*reversed([value for value in (*roots, *block.results) if value in makers])]
        opened: set[int] = set()
        while pending:
            value = pending[-1]
            if value in opened or value in self.visited:
                pending.pop()
                self.visited.setdefault(value, len(self.visited))
                continue
            opened.add(value)
            flat = makers[value]
            read = (*flat.op.operands, *(outer for region in flat.inner for outer in region.outer))
            pending += [one for one in reversed(read) if one in makers and one not in opened]

    def is_fused(self, kernel: int, value: int) -> bool:
        """Whether a kernel already holds several ops when a value is decided; later visits are decided first."""
        at = self.visited.get(value, 0)
        return any(self.visited.get(member, 0) > at for member in self.members[kernel])

    def is_needed_elsewhere(self, value: int) -> bool:
        """Whether a user also needs a value through a kept one, so it cannot be part of that user only."""
        bit = self._bits[value]
        return any(self._goes_around(value, bit, user) for user in self.users.get(value, ()))

    def _goes_around(self, value: int, bit: int, user: CostOp) -> bool:
        for operand in dict.fromkeys(user.operands):
            if operand == value or not self._before.get(operand, 0) & bit:
                continue
            if operand in self.kept or self._goes_around(value, bit, self._makers[operand].op):
                return True
        return False

    def start(self, op: CostOp) -> None:
        """Start a kernel that computes the value of an op."""
        (value,) = op.results
        self.members[value] = set()
        self._places[value, value] = 1
        if op.kind.name == "stablehlo.dynamic_update_slice":
            self.targets[value] = op.operands[0]
        self._read(op, value, {value}, False)

    def places(self, value: int, kernel: int) -> int:
        """The number of places at which a kernel needs a value."""
        return sum(self._places[kernel, user] for user in self.readers[value][kernel].ops)

    def join(self, op: CostOp, kernel: int) -> None:
        """Compute the value of an op inside a kernel."""
        (value,) = op.results
        self.members[kernel].add(value)
        reader = self.readers[value][kernel]
        self._places[kernel, value] = self.places(value, kernel)
        self._read(op, kernel, reader.ops, reader.is_repeated)

    def _read(self, op: CostOp, kernel: int, ops: set[int], is_repeated: bool) -> None:
        if op.kind.name not in ELEMENTWISE:
            ops, is_repeated = {op.results[0]}, is_repeated or op.kind.name in _REPEATING
        for value in op.operands:
            reader = self.readers.setdefault(value, {}).setdefault(kernel, Reader())
            reader.ops |= ops
            reader.is_repeated |= is_repeated
