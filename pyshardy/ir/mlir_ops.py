"""The ops of an MLIR module."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir


def all_ops(op: Any) -> list[Any]:
    """An MLIR op and those inside it, every op before what it holds."""
    found: list[Any] = []
    append, advance = found.append, ir.WalkResult.ADVANCE

    def visit(op: Any) -> Any:
        append(op)
        return advance

    op.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found
