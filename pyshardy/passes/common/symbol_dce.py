"""`symbol-dce`: removes private symbols that nothing live refers to (import spec, section 3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxlib.mlir import ir

from pyshardy.ir.attrs import symbols_in
from pyshardy.ir.functions import calls
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
    if not private:
        return
    with_meshes = any(op.name == "sdy.mesh" for op in private.values())
    live = [op for op in block if op.attrs.get("sym_name") not in private]
    _follow_calls(live, private)
    # What calls do not reach may be reached otherwise: only then are all attributes looked at.
    pending = list(live)
    while pending and private:
        for name, *inner in _references(pending.pop(), with_meshes):
            if name in private and (not inner or private[name].name == "builtin.module"):
                pending.append(private.pop(name))
    for op in private.values():
        op.erase()


def _follow_calls(live: list[Op], private: dict[str, Op]) -> None:
    """Move what the ops of `live` call, directly or not, from `private` to them."""
    for symbol in live:  # which grows meanwhile
        if not private:
            return
        for call in calls(symbol):
            if call.attrs["callee"] in private:
                live.append(private.pop(call.attrs["callee"]))


def _references(symbol: Op, with_meshes: bool) -> Iterator[tuple[str, ...]]:
    """The paths of the symbols that an op or anything in it refers to; those of meshes only if they matter."""
    for op in walk(symbol):
        has_any = with_meshes or not op.name.startswith(_WITHOUT_SYMBOLS) or op.name in _WITH_SYMBOLS
        for name, attr in op.attrs.items():
            if name == "callee" and isinstance(attr, str):
                yield (attr,)
            elif has_any or type(attr) in _MAY_REFER or ("." in name and not name.startswith("sdy.")):
                yield from symbols_in(attr)


_WITHOUT_SYMBOLS = ("stablehlo.", "sdy.", "func.", "chlo.")
"""Dialects whose own attributes refer to no symbols but meshes, other than directly or in a list."""
_WITH_SYMBOLS = frozenset(("stablehlo.composite", "stablehlo.custom_call"))
_MAY_REFER = frozenset((ir.FlatSymbolRefAttr, ir.SymbolRefAttr, ir.ArrayAttr, ir.DictAttr, list))
"""What is looked at on every op, whoever gave it the attribute; a list is that of the attributes of arguments."""
