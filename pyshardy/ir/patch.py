"""Writing nodes that are as they were read but for their attributes: a copy of the MLIR module is changed in place.

That is what a propagation pass alone leaves behind. Copying takes MLIR a fraction of the time that creating the ops
one by one through the bindings takes.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.nodes import Op, Source, walk


def patch_copy(root: Op, table: AttrTable, target: ir.Block) -> bool:
    """Fill a block with what the module `root` holds, if that is what was read but for attributes and ops gone.

    Args:
        root: The module op.
        table: Converts attributes.
        target: An empty block.

    Returns:
        Whether it was; otherwise nothing is done.
    """
    source = root.source
    if source is None:
        return False
    kept = list(walk(root))
    if not _is_in_place(kept, source):
        return False
    copy = source.module.operation.clone(ip=False)
    copies = all_ops(copy)
    encoded: _Encoded = {}
    for op in kept[1:]:
        if op.name == "func.func":
            _patch_function(op, copies[op.number], table)
        elif op.attrs != source.attrs[op.number]:
            _patch(op, copies[op.number].attributes, source.attrs[op.number], table, encoded)
    _erase_others(copies, kept)
    for number in (op.number for op in root.region.block):
        target.append(copies[number])
    return True


def all_ops(op: Any) -> list[Any]:
    """An MLIR op and those inside it, every op before what it holds."""
    found: list[Any] = []
    append, advance = found.append, ir.WalkResult.ADVANCE

    def visit(op: Any) -> Any:
        append(op)
        return advance

    op.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _is_in_place(ops: list[Op], source: Source) -> bool:
    last = -1
    for op in ops:
        if op.source is not source or op.number <= last or (last >= 0 and source.has_moved(op)):
            return False
        last = op.number
    return True


_Encoded = dict[tuple[str, str, int], Any]
"""MLIR attributes by name of the op, name and identity of the value."""


def _patch(op: Op, attributes: Any, given: dict[str, Any], table: AttrTable, encoded: _Encoded) -> None:
    """Give the copy of an op the attributes of the op."""
    op_name, attrs = op.name, op.attrs
    for name, value in attrs.items():
        if name not in given or given[name] is not value:
            key = op_name, name, id(value)
            attr = encoded.get(key)
            if attr is None:
                attr = encoded[key] = table.encode(op_name, name, value)
            attributes[name] = attr
    for name in given:
        if name not in attrs:
            del attributes[name]


def _patch_function(op: Op, copy: Any, table: AttrTable) -> None:
    """The same for a function, whose attributes hold lists, so that it is unknown which of them are new."""
    wanted = table.encode_attrs(op.name, op.attrs)
    attributes = copy.attributes
    for name, attr in wanted.items():
        attributes[name] = attr
    for name in [name for name, _ in attributes.items() if name not in wanted]:
        del attributes[name]


def _erase_others(copies: list[Any], kept: list[Op]) -> None:
    """Erase the copies of ops that are gone, users before what they use."""
    if len(kept) == len(copies):
        return
    numbers = {op.number for op in kept}
    for number in range(len(copies) - 1, 0, -1):
        if number not in numbers:
            copies[number].erase()
