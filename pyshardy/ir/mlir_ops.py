"""The ops of an MLIR module. A wrapper of the bindings costs time and memory, so most are never made."""

from __future__ import annotations

from typing import Any, NamedTuple

from jaxlib.mlir import ir

MANY_STEPS = 200
"""More steps than this through a block, per op of the block, take longer than listing the ops."""
NEXT = 12
"""Asking for the next op takes as long as this many steps through a block."""


class _BlockLocation(NamedTuple):
    """The position of a block: the block around it, the position there of its op, its region, and its number."""

    around: int
    place: int
    region: int
    block: int
    ops: int


class MlirOps:
    """Finds the ops and blocks of an MLIR module by position.

    Args:
        module: The MLIR module; it must not change.
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._block_locations: list[_BlockLocation] = []
        self._blocks: dict[int, Any] = {}
        self._steps: dict[int, int] = {}
        self._listed: dict[int, list[Any]] = {}
        self._latest: dict[int, tuple[int, Any]] = {}

    def add_block(self, around: int, place: int, region: int, block: int, count: int) -> int:
        """Number a block.

        Args:
            around: The number of the block around it; -1 for a block that holds only the module op.
            place: The position there of the op that holds it.
            region: The number of its region in that op.
            block: Its number in that region.
            count: The number of its ops.
        """
        self._block_locations.append(_BlockLocation(around, place, region, block, count))
        return len(self._block_locations) - 1

    def op_at(self, block: int, place: int) -> Any:
        """The op at a position in a block; the bindings step there from the start or from an earlier op."""
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
        if self._steps[block] > MANY_STEPS * self._block_locations[block].ops:
            self._listed[block] = [op.operation for op in operations]
        return operations[place].operation

    def block(self, number: int) -> Any:
        """The block of a number."""
        found = self._blocks.get(number)
        if found is None:
            location = self._block_locations[number]
            parent = self.op_at(location.around, location.place)
            found = self._blocks[number] = parent.regions[location.region].blocks[location.block]
        return found
