"""From nodes to MLIR, as bytecode that MLIR parses, or op by op."""

from __future__ import annotations

import warnings
from typing import Any

from jaxlib.mlir import ir

from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.emit import CannotEmitError, emit_module
from pyshardy.ir.nodes import Block, Op, Region, Value
from pyshardy.ir.pause_gc import pause_gc


class OpByOpWarning(ResourceWarning):
    """A module is written op by op, which takes four times as long; Python shows it only on request (`-W default`)."""


def write_module(root: Op, table: AttrTable) -> ir.Module:
    """A new MLIR module with the content of a `builtin.module` op.

    Args:
        root: The module op.
        table: Converts attributes and types. It belongs to the context of `root`, which must be entered.

    Raises:
        UnsupportedVersionError: The dialect of the installed jaxlib cannot hold a value.

    Warns:
        OpByOpWarning: Bytecode cannot hold the module, or MLIR refuses it, for example as invalid; the message says
            why.
    """
    with pause_gc():
        try:
            return ir.Module.parse(emit_module(root, table))
        except (CannotEmitError, ir.MLIRError) as error:  # the verifier reports an invalid module
            reason = str(error).partition("\n")[0]
        warnings.warn(f"a module is written op by op: {reason}", OpByOpWarning, stacklevel=2)
        return write_op_by_op(root, table)


def write_op_by_op(root: Op, table: AttrTable) -> ir.Module:
    """The same for any module, valid or not, with one call of the bindings per op."""
    module = ir.Module.create(root.location)
    for name, attr in table.encode_attrs(root.name, root.attrs).items():
        module.operation.attributes[name] = attr
    _Writer(table).fill_block(root.region.block, module.body)
    return module


class _Writer:
    def __init__(self, table: AttrTable) -> None:
        self.table = table
        self.values: dict[Value, Any] = {}
        self.blocks: dict[Block, Any] = {}
        self.early: dict[Value, Any] = {}  # placeholder ops of values used before they are defined

    def fill_block(self, block: Block, target: Any) -> None:
        values = self.values
        place = ir.InsertionPoint(target)
        for op in block:
            try:
                operands = [values[value] for value in op.operands]
            except KeyError:
                operands = [values.get(value) or self.early_value(value, place) for value in op.operands]
            created = ir.Operation.create(
                op.name,
                [result.type.mlir for result in op.results],
                operands,
                self.table.encode_attrs(op.name, op.attrs),
                [self.blocks[successor] for successor in op.successors] or None,
                len(op.regions),
                op.location,
                place,
            )
            for result, mirror in zip(op.results, created.results):
                values[result] = mirror
            if self.early:
                self.define_early_values(op)
            for region, target_region in zip(op.regions, created.regions):
                self.fill_region(region, target_region)

    def early_value(self, value: Value, place: Any) -> Any:
        """A placeholder for a value that is not written yet: a block may precede the one that defines its operands."""
        unknown = ir.Location.unknown()
        op = ir.Operation.create("builtin.unrealized_conversion_cast", [value.type.mlir], [], loc=unknown, ip=place)
        self.early[value] = op
        self.values[value] = op.result
        return op.result

    def define_early_values(self, op: Op) -> None:
        """Replace the uses of an op's placeholders by its results."""
        for result in op.results:
            early = self.early.pop(result, None)
            if early is not None:
                early.result.replace_all_uses_with(self.values[result])
                early.erase()

    def fill_region(self, region: Region, target: Any) -> None:
        created: list[Any] = []
        for block in region.blocks:
            locations = [arg.location or ir.Location.unknown() for arg in block.args]
            types = [arg.type.mlir for arg in block.args]
            if created:
                new = created[-1].create_after(*types, arg_locs=locations)
            else:
                new = ir.Block.create_at_start(target, types, locations)
            created.append(new)
            self.blocks[block] = new
            for arg, mirror in zip(block.args, new.arguments):
                self.values[arg] = mirror
        for block, new in zip(region.blocks, created):
            self.fill_block(block, new)
