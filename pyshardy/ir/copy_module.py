"""A full copy of a module as nodes, with use orders and the data that makes writing fast."""

from __future__ import annotations

from pyshardy.ir.nodes import Block, Op, Region, Value


def copy_module(root: Op) -> Op:
    """A copy of a module and everything in it.

    Unlike `Op.clone`, it keeps the order of use-lists, on which results depend, and the sources of ops, which make them
    fast to write. The ops of both share their attributes, which never change.

    Args:
        root: The module; it does not change.
    """
    return _Copier().copy(root)


class _Copier:
    """Copies ops without their operands and uses first, then these, because they may refer to any op."""

    def __init__(self) -> None:
        self.ops: dict[Op, Op] = {}
        self.values: dict[Value, Value] = {}
        self.blocks: dict[Block, Block] = {}

    def copy(self, root: Op) -> Op:
        ops, values = self.ops, self.values
        copied = self.op(root)
        for op, new in ops.items():
            if op.operands:
                new.operands = tuple([values[value] for value in op.operands])
            if op.successors:
                new.successors = tuple([self.blocks[block] for block in op.successors])
        for value, new_value in values.items():
            uses = value.flat_uses
            if not uses:
                continue
            if isinstance(uses, dict):
                new_value.flat_uses = {(ops[op], index): None for op, index in uses}
            elif len(uses) == 2:
                new_value.flat_uses = (ops[uses[0]], uses[1])
            else:
                new_value.flat_uses = tuple([item if type(item) is int else ops[item] for item in uses])
        return copied

    def op(self, op: Op) -> Op:
        new = Op(op.name, (), (), op.attrs, len(op.regions), op._location)
        new.source, new.number = op.source, op.number
        self.ops[op] = new
        results = op.results
        if len(results) == 1:
            value = results[0]
            new_value = self.values[value] = Value(value.type, new, 0, value._location)
            new.results = (new_value,)
        elif results:
            new.results = tuple([Value(value.type, new, value.index, value._location) for value in results])
            self.values.update(zip(results, new.results))
        for region, target in zip(op.regions, new.regions):
            self.region(region, target)
        return new

    def region(self, region: Region, target: Region) -> None:
        for block in region.blocks:
            new = self.blocks[block] = target.add_block()
            for arg in block.args:
                self.values[arg] = new.add_arg(arg.type, arg._location)
            self.fill(block, new)

    def fill(self, block: Block, target: Block) -> None:
        """Copy the ops of a block."""
        op, last, order = block.first, None, 0
        while op is not None:
            new = self.op(op)
            new.block, new.prev, new.order = target, last, order
            if last is None:
                target.first = new
            else:
                last.next = new
            op, last, order = op.next, new, order + 1
        target.last = last
        target._ordered = True
