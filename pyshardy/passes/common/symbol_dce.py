"""`symbol-dce`: removes private symbols that nothing live refers to.

Source: docs/semantics/import.md#symbol-dce
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.functions import calls
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_in
from pyshardy.ir.symbol_paths import symbols_in
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext


class SymbolDce(Pass):
    """Remove private symbols that nothing live refers to."""

    name = "symbol-dce"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        symbol_dce(op, context.attrs)


def symbol_dce(root: Op, attrs: AttrTable) -> None:
    """Erase the private symbols of a module that no public symbol and no other op reaches.

    Args:
        root: The module.
        attrs: The attributes of its context.
    """
    block = root.region.block
    hidden = [op for op in block if op.attrs.get("sym_visibility") in ("private", "nested")]
    private = {op.attrs["sym_name"]: op for op in hidden}
    if not private:
        return
    with_meshes = any(op.name == "sdy.mesh" for op in private.values())
    live = [op for op in block if op.attrs.get("sym_name") not in private]
    _follow_calls(live, private)
    # Attributes are searched only for symbols that no call reaches.
    names: frozenset[str] | None = None if with_meshes else attrs.names_of_references()
    references = _References(names)
    pending = [] if names == frozenset(["callee"]) else list(live)
    while pending and private:
        for name, *inner in references.of(pending.pop()):
            if name in private and (not inner or private[name].name == "builtin.module"):
                pending.append(private.pop(name))
    for op in private.values():
        op.erase()


def _follow_calls(live: list[Op], private: dict[str, Op]) -> None:
    """Move the functions that the ops of `live` call, directly or indirectly, from `private` to `live`."""
    for symbol in live:  # grows during the loop
        if not private:
            return
        for call in calls(symbol):
            if call.attrs["callee"] in private:
                live.append(private.pop(call.attrs["callee"]))


class _References:
    """Finds the symbols that ops refer to; an attribute that many ops share is searched once.

    Args:
        names: The attributes that may refer to symbols; None for all.
    """

    def __init__(self, names: frozenset[str] | None) -> None:
        self._names = names
        self._seen: dict[int, Any] = {}  # by identity, with the attribute, which keeps it alive

    def of(self, symbol: Op) -> Iterator[tuple[str, ...]]:
        """The paths of the symbols that an op or anything in it refers to, except those found before."""
        seen, names = self._seen, self._names
        for op in ops_in(symbol):
            attrs = op.attrs
            if names is not None and names.isdisjoint(attrs):
                continue
            for name, attr in attrs.items():
                if name == "callee" and isinstance(attr, str):
                    yield (attr,)
                elif id(attr) not in seen:
                    seen[id(attr)] = attr
                    yield from symbols_in(attr)
