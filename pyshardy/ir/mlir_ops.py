"""The ops of an MLIR module: a wrapper of the bindings for each costs time and memory, so most are never made."""

from __future__ import annotations

from typing import Any, NamedTuple

from jaxlib.mlir import ir

MANY_STEPS = 200
"""So many steps through a block for each of its ops take longer than to list these."""
NEXT = 12
"""To ask for the op behind another takes as long as so many steps through a block."""


class _Home(NamedTuple):
    """Where a block is: the block around it and the place there of the op that holds it, the region, and the number."""

    around: int
    place: int
    region: int
    block: int
    ops: int


class MlirOps:
    """Finds the ops and blocks of an MLIR module by where they are.

    Args:
        module: The MLIR module; it must not change.
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._homes: list[_Home] = []
        self._blocks: dict[int, Any] = {}
        self._steps: dict[int, int] = {}
        self._listed: dict[int, list[Any]] = {}
        self._latest: dict[int, tuple[int, Any]] = {}

    def add_block(self, around: int, place: int, region: int, block: int, count: int) -> int:
        """Number a block.

        Args:
            around: The number of the block around it; -1 stands for one that holds the module op alone.
            place: The place there of the op that holds it.
            region: The number of its region in that op.
            block: Its number in that region.
            count: How many ops it has.
        """
        self._homes.append(_Home(around, place, region, block, count))
        return len(self._homes) - 1

    def op_at(self, block: int, place: int) -> Any:
        """The op at a place in a block; the bindings go there step by step, from its start or from an op before it."""
        if block < 0:
            return self._module.operation
        listed = self._listed.get(block)
        if listed is not None:
            return listed[place]
        start, op = self._latest.get(block, (place, None))
        if op is None or place < start or (place - start) * NEXT > place:
            op = self._from_start(block, place)
        else:
            for _ in range(start, place):
                op = ir.InsertionPoint.after(op).ref_operation
        self._latest[block] = place, op
        return op

    def _from_start(self, block: int, place: int) -> Any:
        operations = self.block(block).operations
        self._steps[block] = self._steps.get(block, 0) + place
        if self._steps[block] > MANY_STEPS * self._homes[block].ops:
            self._listed[block] = [op.operation for op in operations]
        return operations[place].operation

    def block(self, number: int) -> Any:
        """The block of a number."""
        found = self._blocks.get(number)
        if found is None:
            home = self._homes[number]
            parent = self.op_at(home.around, home.place)
            found = self._blocks[number] = parent.regions[home.region].blocks[home.block]
        return found
