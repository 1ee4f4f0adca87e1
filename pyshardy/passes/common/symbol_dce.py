"""`symbol-dce`: removes private symbols that nothing live refers to (import spec, section 3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jaxlib.mlir import ir

from pyshardy.ir.attrs import symbols_in
from pyshardy.ir.functions import calls
from pyshardy.ir.nodes import Op, walk
from pyshardy.passes.base import Pass, PassContext


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
    references = _References(with_meshes)
    pending = list(live)
    while pending and private:
        for name, *inner in references.of(pending.pop()):
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


class _References:
    """Finds the symbols that ops refer to; of an attribute that many ops share, once.

    Args:
        with_meshes: Whether those of meshes matter.
    """

    def __init__(self, with_meshes: bool) -> None:
        self._with_meshes = with_meshes
        self._seen: dict[tuple[str, str, int], Any] = {}  # by identity, with the attribute, which keeps it alive

    def of(self, symbol: Op) -> Iterator[tuple[str, ...]]:
        """The paths of the symbols that an op or anything in it refers to, but those found before."""
        seen = self._seen
        for op in walk(symbol):
            for name, attr in op.attrs.items():
                key = op.name, name, id(attr)
                if key not in seen:
                    seen[key] = attr
                    if name == "callee" and isinstance(attr, str):
                        yield (attr,)
                    elif self._may_refer(op.name, name, attr):
                        yield from symbols_in(attr)

    def _may_refer(self, op_name: str, name: str, attr: Any) -> bool:
        if self._with_meshes or op_name in _WITH_SYMBOLS or not op_name.startswith(_WITHOUT_SYMBOLS):
            return True
        return type(attr) in _MAY_REFER or ("." in name and not name.startswith("sdy."))


_WITHOUT_SYMBOLS = ("stablehlo.", "sdy.", "func.", "chlo.")
"""Dialects whose own attributes refer to no symbols but meshes, other than directly or in a list."""
_WITH_SYMBOLS = frozenset(("stablehlo.composite", "stablehlo.custom_call"))
_MAY_REFER = frozenset((ir.FlatSymbolRefAttr, ir.SymbolRefAttr, ir.ArrayAttr, ir.DictAttr, list))
"""What is looked at on every op, whoever gave it the attribute; a list is that of the attributes of arguments."""
