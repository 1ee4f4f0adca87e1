"""`sdy-insert-func-call-reshards`: results of calls are resharded from what the callee gives (export spec, 4.15)."""

from __future__ import annotations

from dataclasses import dataclass

from pyshardy.core.sharding import TensorSharding, is_equivalent
from pyshardy.ir.functions import SHARDING, calls, result_sharding
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import fill_shardings
from pyshardy.ir.symbols import SymbolTable
from pyshardy.passes.base import Pass, PassContext


@dataclass(frozen=True)
class InsertFuncCallReshards(Pass):
    """Put a reshard behind every result of a call whose sharding is not that of the callee's result."""

    name = "sdy-insert-func-call-reshards"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        symbols, meshes = SymbolTable(op), context.meshes
        for call in list(calls(op)):
            callee = symbols.callee(call)
            wanted: tuple[TensorSharding, ...] = call.attrs.get(SHARDING, ())
            found = [result_sharding(callee, result.index) for result in call.results]
            given = fill_shardings(found, call.results, meshes)
            if given is None:
                given = tuple(TensorSharding.replicated_like(sharding.mesh, sharding.rank) for sharding in wanted)
            if given:
                _reshard_results(call, given, wanted)
                call.attrs[SHARDING] = given


def _reshard_results(call: Op, given: tuple[TensorSharding, ...], wanted: tuple[TensorSharding, ...]) -> None:
    for index, result in enumerate(call.results):
        target = wanted[index] if wanted else None
        if is_equivalent(given[index], target):
            continue
        if target is None:
            target = TensorSharding.replicated_like(given[index].mesh, given[index].rank)
        reshard = Op("sdy.reshard", [result], [result.type], {"sharding": target}, location=call.location)
        result.replace_other_uses(reshard.insert_after(call))
