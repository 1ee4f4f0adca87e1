"""`sdy-insert-func-call-reshards`: reshards results of calls from the sharding that the callee returns.

Source: docs/semantics/export.md#sdy-insert-func-call-reshards
"""

from __future__ import annotations

from pyshardy.core.sharding import TensorSharding, is_equivalent
from pyshardy.ir.functions import SHARDING, calls, result_sharding
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import fill_shardings
from pyshardy.ir.symbols import SymbolTable
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext


class InsertFuncCallReshards(Pass):
    """Put a reshard after every result of a call whose sharding differs from that of the callee's result.

    If a result and the callee's result are unreduced along different axes, no reshard is inserted, because a reshard
    must not add or drop unreduced axes silently. `sdy-verify-unreduced-axes` refuses such a call.
    """

    name = "sdy-insert-func-call-reshards"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        symbols, meshes = SymbolTable(op), context.meshes
        for call in calls(op):
            callee = symbols.callee(call)
            wanted: tuple[TensorSharding, ...] = call.attrs.get(SHARDING, ())
            found = [result_sharding(callee, result.index) for result in call.results]
            given = fill_shardings(found, call.results, meshes)
            if given is None:
                given = tuple(TensorSharding.fully_replicated(sharding.mesh, sharding.rank) for sharding in wanted)
            if given:
                call.set_attr(SHARDING, _reshard_results(call, given, wanted))


def _reshard_results(
    call: Op, given: tuple[TensorSharding, ...], wanted: tuple[TensorSharding, ...]
) -> tuple[TensorSharding, ...]:
    """Reshard from the callee's shardings to those on the call; return the call's new shardings."""
    if not wanted:
        wanted = tuple(TensorSharding.fully_replicated(sharding.mesh, sharding.rank) for sharding in given)
    made: list[TensorSharding] = []
    for result, source, target in zip(call.results, given, wanted):
        if source.unreduced != target.unreduced:
            made.append(target)
            continue
        made.append(source)
        if not is_equivalent(source, target):
            reshard = Op("sdy.reshard", [result], [result.type], {"sharding": target}, location=call.place)
            result.replace_other_uses(reshard.insert_after(call))
    return tuple(made)
