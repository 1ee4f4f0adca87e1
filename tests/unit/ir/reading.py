"""Modules as nodes, from text."""

from __future__ import annotations

from typing import Any

from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Value, walk


def read(text: str, *, allow_unregistered: bool = False) -> Op:
    """The module op of a text."""
    return Module.parse(text, allow_unregistered_dialects=allow_unregistered).copy_root()


def main(body: str, *, args: str = "%a: tensor<8xf32>, %b: tensor<8xf32>", before: str = "") -> Op:
    """The function of a module with this body, the terminator left out; `before` stands before the function."""
    root = read(f"{before}\nfunc.func @main({args}) {{\n{body}\n  return\n}}")
    return next(op for op in root.region.block if op.name == "func.func")


def find(root: Op, name: str, number: int = 0) -> Op:
    """The op of this name, counted from 0."""
    return [op for op in walk(root) if op.name == name][number]


def function(root: Op, name: str) -> Op:
    """The function of this name."""
    return next(op for op in walk(root) if op.name == "func.func" and op.attrs["sym_name"] == name)


def args(root: Op) -> list[Value]:
    """The arguments of a function."""
    return root.region.blocks[0].args


def names(ops: list[Op]) -> list[str]:
    """The symbol names of ops."""
    return [op.attrs["sym_name"] for op in ops]


def all_ops(op: Any) -> list[Any]:
    """An op and what is inside, in pre-order."""
    found = [op]
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                found += all_ops(inner.operation)
    return found
