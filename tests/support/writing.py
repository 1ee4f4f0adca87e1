"""The two ways of writing nodes compared: as bytecode and op by op."""

from __future__ import annotations

import warnings
from typing import Any

from jaxlib.mlir import ir

from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.emit import emit_module
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.read import read_module
from pyshardy.ir.write import OpByOpWarning, write_op_by_op


def emitted(module: Module, root: Op) -> str:
    """The text, with locations and in generic form, of what is written as bytecode; it is that of the other ways.

    Args:
        module: The module that the nodes were read from.
        root: The nodes.

    Raises:
        CannotEmitError: The nodes cannot be written as bytecode.
    """
    with module.context:
        found = ir.Module.parse(emit_module(root, module.attrs))
        check_same(found, write_op_by_op(root, module.attrs), module.attrs)
        return asm(found)


def check_same(found: ir.Module, expected: ir.Module, table: AttrTable) -> None:
    """Assert that two MLIR modules have the same text, and the same order of uses of values."""
    assert asm(found) == asm(expected)
    assert uses(read_module(found, table)) == uses(read_module(expected, table))


def asm(module: ir.Module) -> str:
    """The text of a module with all details."""
    return str(module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True))


def uses(root: Op) -> list[list[tuple[int, int]]]:
    """The uses of all values in order, ops by their numbers."""
    ops = {op: number for number, op in enumerate(walk(root))}
    values: list[Any] = []
    for op in ops:
        values += op.results
        for region in op.regions:
            for block in region.blocks:
                values += block.args
    return [[(ops[op], index) for op, index in value.uses] for value in values]


def verify_written(module: Module) -> None:
    """Write a module from its nodes, and verify it; only an invalid one, or one with resources, is written op by op.

    Raises:
        InvalidModuleError: MLIR's verifier refuses it.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OpByOpWarning)
        assert module.mlir
    module.verify()
    reasons = [str(warning.message) for warning in caught if "it has resources" not in str(warning.message)]
    assert not reasons, reasons
