"""Copies of regions."""

from __future__ import annotations

from collections.abc import Iterable

from pyshardy.ir.blocks import Block, Region, Value
from pyshardy.ir.walk import walk


def clone_region_into(source: Region, target: Region, mapping: dict[Value, Value]) -> None:
    """Copy the blocks of `source` to the end of `target`; adds their arguments and results to `mapping`."""
    blocks = {block: target.add_block() for block in source.blocks}
    for block, copy in blocks.items():
        for arg in block.args:
            mapping[arg] = copy.add_arg(arg.type, arg.place)
    for block, copy in blocks.items():
        for op in block:
            cloned = copy.append(op.clone(mapping))
            cloned.successors = tuple(blocks.get(successor, successor) for successor in op.successors)
    if len(blocks) > 1:
        _map_early_operands(blocks.values(), mapping)


def _map_early_operands(blocks: Iterable[Block], mapping: dict[Value, Value]) -> None:
    """Map the operands that were copied before their definition: a block may precede the one that defines them."""
    for block in blocks:
        for top in block:
            for op in walk(top):
                for index, value in enumerate(op.operands):
                    if value in mapping:
                        op.set_operand(index, mapping[value])
