"""From nodes to MLIR where nothing but attributes has changed: a copy of what was read, with those that are new."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.nodes import Op
from pyshardy.ir.source import Source

Change = tuple[tuple[str, Any], ...]
"""Names of attributes, each with what it becomes; None for one that goes."""


def write_attributes(root: Op, table: AttrTable) -> ir.Module:
    """A new MLIR module: a copy of the one that `root` was read from, with the attributes that the nodes have now.

    Args:
        root: The module op; the structure is as it was read (`Source.is_intact`).
        table: Converts attributes and types; that of the context in which `root` was read, which must be entered.

    Raises:
        UnsupportedVersionError: A value that the dialect of the installed jaxlib cannot hold.
    """
    source = root.source
    assert source is not None and source.is_intact
    return _Writer(source, table).write(root)


class _Writer:
    """Goes through the ops of the copy in the order of their numbers.

    Attributes:
        changes: Per number of an op, what changes.
        number: The number of the op that comes next.
        known: By the identity of attributes that ops share, other ones and what changes from those to these.
    """

    def __init__(self, source: Source, table: AttrTable) -> None:
        self.source = source
        self.table = table
        self.changes: list[Change | None] = [None] * len(source.kinds)
        self.number = 0
        self.known: dict[int, tuple[dict[str, Any], Change]] = {}

    def write(self, root: Op) -> ir.Module:
        self.collect(root)
        original = self.source.module.operation
        copy = original.clone(ip=False)
        module = ir.Module.create(original.location)  # the bindings make none of an op
        for op in [*copy.regions[0].blocks[0].operations]:
            module.body.append(op)
        for name, attr in self.table.encode_attrs(root.name, root.shared_attrs).items():
            module.operation.attributes[name] = attr
        module.operation.walk(self.visit, ir.WalkOrder.PRE_ORDER)
        return module

    def collect(self, root: Op) -> None:
        """Note what changes inside an op."""
        changes, kinds = self.changes, self.source.kinds
        for region in root.regions:
            for block in region.blocks:
                op = block.first
                while op is not None:
                    number = op.number
                    kind = kinds[number]
                    if not kind.name:
                        changes[number] = self.change_of_function(op)
                    elif op.shared_attrs is not kind.attrs:
                        changes[number] = self.change(op, kind.attrs)
                    if op.regions:
                        self.collect(op)
                    op = op.next

    def change(self, op: Op, old: dict[str, Any]) -> Change:
        """What changes of an op that was read with these attributes."""
        new = op.shared_attrs
        if not op.owns_attrs:
            known = self.known.get(id(new))
            if known is not None and known[0] is old:
                return known[1]
        changed = {name: value for name, value in new.items() if old.get(name) is not value}
        found = _change(old, self.table.encode_attrs(op.name, changed), new)
        if not op.owns_attrs:
            self.known[id(new)] = old, found
        return found

    def change_of_function(self, op: Op) -> Change:
        """What changes of a function: its attributes hold lists, which may have other entries now."""
        source = self.source.mlir.op_at(self.source.blocks[op.number], self.source.places[op.number])
        old = dict(source.attributes.items())
        new = self.table.encode_attrs(op.name, op.shared_attrs)
        return _change(old, {name: attr for name, attr in new.items() if name not in old or old[name] != attr}, new)

    def visit(self, target: Any) -> Any:
        """Give an op of the copy what changes."""
        change = self.changes[self.number]
        self.number += 1
        if change is not None:
            attributes = target.attributes
            for name, value in change:
                if value is None:
                    del attributes[name]
                else:
                    attributes[name] = value
        return _ADVANCE


def _change(old: dict[str, Any], changed: dict[str, Any], new: dict[str, Any]) -> Change:
    return (*changed.items(), *[(name, None) for name in old if name not in new])


_ADVANCE = ir.WalkResult.ADVANCE
