"""A copy of a module as nodes that is as good as the original: to read, to write, and in the order of its uses."""

from __future__ import annotations

from pyshardy.ir.nodes import Op, Value, walk


def copy_module(root: Op) -> Op:
    """A copy of a module and everything in it.

    Unlike `Op.clone`, it keeps the order of use-lists, on which results depend, and where ops were read from, which
    makes them fast to write.

    Args:
        root: The module; it is not changed.
    """
    values: dict[Value, Value] = {}
    copy = root.clone(values)
    ops: dict[Op, Op] = {}
    for old, new in zip(walk(root), walk(copy), strict=True):
        ops[old] = new
        new.source, new.number, new._location = old.source, old.number, old._location
    for value, copied in values.items():
        uses = value.flat_uses
        if isinstance(uses, dict):
            copied.flat_uses = {(ops[op], index): None for op, index in uses}
        elif len(uses) > 2:
            copied.flat_uses = tuple([ops[item] if isinstance(item, Op) else item for item in uses])
    return copy
