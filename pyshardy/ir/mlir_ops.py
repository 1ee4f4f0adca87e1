"""The ops of an MLIR module: a wrapper of the bindings for each costs time and memory, so most are never made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir

if TYPE_CHECKING:
    from pyshardy.ir.nodes import Block

MANY_STEPS = 200
"""So many steps through a block for each of its ops take longer than to list these."""


def all_ops(op: Any) -> list[Any]:
    """An MLIR op and those inside it, every op before what it holds."""
    found: list[Any] = []
    append, advance = found.append, ir.WalkResult.ADVANCE

    def visit(op: Any) -> Any:
        append(op)
        return advance

    op.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


class MlirOps:
    """Finds the MLIR ops and blocks of nodes that stand where they were read, or are about to be.

    Args:
        module: The MLIR module.
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._blocks: dict[Block, Any] = {}
        self._steps: dict[Block, int] = {}
        self._listed: dict[Block, list[Any]] = {}

    def op_at(self, block: Block, place: int) -> Any:
        """The op at a place in a block; the bindings go there step by step."""
        if block.region is None:
            return self._module.operation
        listed = self._listed.get(block)
        if listed is not None:
            return listed[place]
        operations = self.block(block).operations
        self._steps[block] = self._steps.get(block, 0) + place
        if self._steps[block] > MANY_STEPS * (place + 1):
            self._listed[block] = [op.operation for op in operations]
        return operations[place].operation

    def block(self, block: Block) -> Any:
        """The MLIR block of a block."""
        found = self._blocks.get(block)
        if found is None:
            region = block.region
            assert region is not None
            outer = region.op.block
            parent = self._module.operation if outer is None else self.op_at(outer, region.op.order)
            mirror = parent.regions[region.op.regions.index(region)]
            found = self._blocks[block] = mirror.blocks[region.blocks.index(block)]
        return found
