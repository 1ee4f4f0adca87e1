"""From MLIR to nodes: one walk over the module, every op, attribute and type read once."""

from __future__ import annotations

import re
from typing import Any

from jaxlib.mlir import ir

from pyshardy.errors import InvalidModuleError
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.diagnostics import Diagnostic, Severity, format_location
from pyshardy.ir.nodes import Block, Op, Region, Use, Value
from pyshardy.ir.pause_gc import pause_gc


def read_module(module: ir.Module, table: AttrTable) -> Op:
    """The `builtin.module` op of an MLIR module with everything in it; the module is not changed.

    Args:
        module: The MLIR module; its context must be entered.
        table: Converts attributes and types; one per context.

    Raises:
        InvalidModuleError: An op of an unknown dialect that has properties, which the bindings do not hand out.
    """
    with pause_gc():
        reader = _Reader(table, module.context)
        root = reader.read_op(module.operation)
        reader.restore_use_order()
    return root


_PROPERTIES = re.compile(r'"(?:[^"\\]|\\.)*"\([^)]*\)(?:\[[^\]]*\])? <\{')


class _Reader:
    def __init__(self, table: AttrTable, context: Any) -> None:
        self.table = table
        self.context = context
        self.allows_unregistered = context.allow_unregistered_dialects
        self.values: dict[Any, Value] = {}
        self.ops: dict[Any, Op] = {}
        self.blocks: dict[Any, Block] = {}
        self.early: dict[Any, Value] = {}  # stand for values that are used before they are defined

    def read_op(self, source: Any) -> Op:
        values, table = self.values, self.table
        name = source.name
        if self.allows_unregistered and not self.context.is_registered_operation(name):
            _check_no_properties(source)
        try:
            operands = [values[value] for value in source.operands]
        except KeyError:
            operands = [values.get(value) or self.early_value(value) for value in source.operands]
        op = Op(
            name,
            operands,
            [table.type(type) for type in source.results.types],
            table.decode_attrs(name, source.attributes.items()),
            location=source.location,
        )
        self.ops[source] = op
        for result, mirror in zip(source.results, op.results):
            values[result] = mirror
        if self.early:
            self.define_early_values(source, op)
        regions = source.regions
        if len(regions):
            op.regions = tuple(Region(op) for _ in regions)
            for region, target in zip(regions, op.regions):
                self.read_region(region, target)
        return op

    def early_value(self, source: Any) -> Value:
        """What stands for a value until its definition is read: a block may come before that of its operands."""
        op = Op("early", result_types=[self.table.type(source.type)])
        found = self.early[source] = self.values[source] = op.result
        return found

    def define_early_values(self, source: Any, op: Op) -> None:
        """Let the uses of what stands for the results of an op use the results."""
        for result, mirror in zip(source.results, op.results):
            early = self.early.pop(result, None)
            if early is not None:
                early.replace_uses(mirror)

    def read_region(self, source: Any, region: Region) -> None:
        blocks = [(block, region.add_block()) for block in source.blocks]
        for block, mirror in blocks:
            self.blocks[block] = mirror
            for arg in block.arguments:
                self.values[arg] = mirror.add_arg(self.table.type(arg.type), arg.location)
        for block, mirror in blocks:
            for inner in block.operations:
                mirror.append(self.read_op(inner.operation))
        if len(blocks) > 1:
            for block, mirror in blocks:
                for last in list(block.operations)[-1:]:
                    mirror.terminator.successors = tuple(self.blocks[block] for block in last.operation.successors)

    def restore_use_order(self) -> None:
        """Put the uses of every value that has several into MLIR's order."""
        ops = self.ops
        for source, value in self.values.items():
            if len(value.uses) > 1:
                uses: list[Use] = [(ops[use.owner.operation], use.operand_number) for use in source.uses]
                value.uses = dict.fromkeys(reversed(uses))


def _check_no_properties(source: Any) -> None:
    """Refuse an op whose properties would get lost: the bindings do not hand out those of unknown dialects."""
    text = str(source.get_asm(print_generic_op_form=True, skip_regions=True))
    if _PROPERTIES.search(text):
        needed = "attributes alone: {...} instead of <{...}>"
        error = InvalidModuleError(
            "reading a module",
            where=format_location(source.location),
            got=f"properties on '{source.name}', an op of an unknown dialect",
            needed=needed,
        )
        message = f"'{source.name}' op of an unknown dialect has properties, needed {needed}"
        error.diagnostics = (Diagnostic(Severity.ERROR, message, source.location),)
        raise error
