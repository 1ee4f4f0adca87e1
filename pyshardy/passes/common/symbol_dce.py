"""`symbol-dce`: removes private symbols that nothing live refers to (import spec, section 3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyshardy.ir.attrs import symbols_in
from pyshardy.ir.nodes import Op, walk
from pyshardy.passes.base import Pass, PassContext


@dataclass(frozen=True)
class SymbolDce(Pass):
    """Remove private symbols that nothing live refers to."""

    name = "symbol-dce"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        symbol_dce(op)


def symbol_dce(root: Op) -> None:
    """Erase the private symbols of a module that no public symbol and no other op reaches."""
    block = root.region.block
    private = {op.attrs["sym_name"]: op for op in block if op.attrs.get("sym_visibility") in ("private", "nested")}
    with_meshes = any(op.name == "sdy.mesh" for op in private.values())
    pending = [op for op in block if op.attrs.get("sym_name") not in private] if private else []
    while pending and private:
        for name in _references(pending.pop(), with_meshes):
            reached = private.pop(name, None)
            if reached is not None:
                pending.append(reached)
    for op in private.values():
        op.erase()


def _references(symbol: Op, with_meshes: bool) -> Iterator[str]:
    """The symbols that an op or anything in it refers to; those of meshes only if they matter."""
    for op in walk(symbol):
        if op.name == "func.call":
            yield op.attrs["callee"]
        elif with_meshes or op.name in ("stablehlo.composite", "stablehlo.custom_call") or not _is_known(op.name):
            for attr in op.attrs.values():
                yield from symbols_in(attr)


def _is_known(name: str) -> bool:
    """Whether ops of this name refer to no symbols but meshes."""
    return name.startswith(("stablehlo.", "sdy.", "func.", "chlo."))
