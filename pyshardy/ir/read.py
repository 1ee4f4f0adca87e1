"""From MLIR to nodes: one walk over the module, every op, attribute and type read once."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.nodes import Block, Op, Region, Use, Value
from pyshardy.ir.pause_gc import pause_gc


def read_module(module: ir.Module, table: AttrTable) -> Op:
    """The `builtin.module` op of an MLIR module with everything in it; the module is not changed.

    Args:
        module: The MLIR module; its context must be entered.
        table: Converts attributes and types; one per context.
    """
    with pause_gc():
        reader = _Reader(table)
        root = reader.read_op(module.operation)
        reader.restore_use_order()
    return root


class _Reader:
    def __init__(self, table: AttrTable) -> None:
        self.table = table
        self.values: dict[Any, Value] = {}
        self.ops: dict[Any, Op] = {}
        self.blocks: dict[Any, Block] = {}
        self.shared: list[tuple[Any, Value]] = []

    def read_op(self, source: Any) -> Op:
        values, table = self.values, self.table
        name = source.name
        op = Op(
            name,
            [values[value] for value in source.operands],
            [table.type(type) for type in source.results.types],
            table.decode_attrs(name, source.attributes.items()),
            location=source.location,
        )
        self.ops[source] = op
        for result, mirror in zip(source.results, op.results):
            values[result] = mirror
        regions = source.regions
        if len(regions):
            op.regions = tuple(Region(op) for _ in regions)
            for region, target in zip(regions, op.regions):
                self.read_region(region, target)
        if name.startswith("cf."):
            op.successors = tuple(self.blocks[block] for block in source.successors)
        return op

    def read_region(self, source: Any, region: Region) -> None:
        blocks = [(block, region.add_block()) for block in source.blocks]
        for block, mirror in blocks:
            self.blocks[block] = mirror
            for arg in block.arguments:
                self.values[arg] = mirror.add_arg(self.table.type(arg.type), arg.location)
        for block, mirror in blocks:
            for inner in block.operations:
                mirror.append(self.read_op(inner.operation))

    def restore_use_order(self) -> None:
        """Put the uses of every value that has several into MLIR's order."""
        ops = self.ops
        for source, value in self.values.items():
            if len(value.uses) > 1:
                uses: list[Use] = [(ops[use.owner.operation], use.operand_number) for use in source.uses]
                value.uses = dict.fromkeys(reversed(uses))
