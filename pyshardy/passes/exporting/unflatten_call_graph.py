"""`sdy-unflatten-call-graph`: redirects calls of equal copies of a function to one of them.

Source: docs/semantics/export.md#sdy-unflatten-call-graph
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from pyshardy.ir.functions import calls, functions, is_declaration
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import ModuleMeshes, all_arg_shardings, all_result_shardings
from pyshardy.ir.symbols import ORIGINAL_NAME, SymbolTable, original_name
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext

_MANUAL_AXES = "sdy.func_manual_axes"


class UnflattenCallGraph(Pass):
    """Redirect calls of copies of one function to one of the copies, if their shardings are equal.

    Attributes:
        dedup_functions_fully: Whether to merge copies with different shardings too.
    """

    name = "sdy-unflatten-call-graph"

    dedup_functions_fully: bool = False

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        symbols, meshes = SymbolTable(op), context.meshes
        found = [call for call in calls(op) if not is_declaration(symbols.callee(call))]
        callees = [symbols.callee(call) for call in found]
        full_keys = {callee: _full_key(callee, meshes) for callee in callees}
        if self.dedup_functions_fully:
            keys: dict[Op, Hashable] = {callee: _short_key(callee) for callee in callees}
            chosen = _most_called(callees, keys, full_keys)
        else:
            keys = full_keys
            chosen = {}
            for callee in callees:
                chosen.setdefault(keys[callee], callee)
        for call, callee in zip(found, callees):
            call.set_attr("callee", chosen[keys[callee]].attrs["sym_name"])
        for function in functions(op):
            function.remove_attr(ORIGINAL_NAME)
            function.remove_attr(_MANUAL_AXES)


def _short_key(function: Op) -> Hashable:
    return original_name(function), function.attrs.get(_MANUAL_AXES)


def _full_key(function: Op, meshes: ModuleMeshes) -> Hashable:
    return _short_key(function), all_arg_shardings(function, meshes), all_result_shardings(function, meshes)


def _most_called(callees: list[Op], keys: dict[Op, Hashable], full_keys: dict[Op, Hashable]) -> dict[Hashable, Op]:
    """One callee per key: the first, until the shardings of another one have more calls in the running count."""
    chosen: dict[Hashable, Op] = {}
    for callee in callees:
        chosen.setdefault(keys[callee], callee)
    counts: Counter[Hashable] = Counter()
    for callee in callees:
        counts[full_keys[callee]] += 1
        if counts[full_keys[callee]] > counts[full_keys[chosen[keys[callee]]]]:
            chosen[keys[callee]] = callee
    return chosen
