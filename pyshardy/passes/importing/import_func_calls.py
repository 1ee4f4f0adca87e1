"""`sdy-import-func-calls`: turns calls into named computations with the body of the callee.

Source: docs/semantics/import.md#sdy-import-func-calls
"""

from __future__ import annotations

from typing import Any

from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import SHARDING, is_declaration
from pyshardy.ir.nodes import Op, clone_region_into
from pyshardy.ir.shardings import ModuleMeshes, all_arg_shardings
from pyshardy.ir.symbols import SymbolTable, calls_in_post_order, original_name
from pyshardy.passes.base import Pass
from pyshardy.passes.importing.add_data_flow_edges import add_data_flow_edges
from pyshardy.transforms.context import PassContext

_CALL_ATTRIBUTES = frozenset(("callee", "arg_attrs", "res_attrs", "no_inline", SHARDING))
_COMPUTATION = "sdy.named_computation"


class ImportFuncCalls(Pass):
    """Replace every call by a named computation, and remove the functions called.

    Attributes:
        add_data_flow_edges_on_named_computations: Whether the computations get edges.
    """

    name = "sdy-import-func-calls"

    add_data_flow_edges_on_named_computations: bool = True

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        import_func_calls(op, context)
        if self.add_data_flow_edges_on_named_computations:
            add_data_flow_edges(op, (_COMPUTATION,))


def import_func_calls(root: Op, context: PassContext) -> None:
    """Inline every call of a function with a body as a named computation."""
    symbols, meshes = SymbolTable(root), context.meshes
    bodies: dict[str, Op] = {}
    warned = False
    for call in calls_in_post_order(root):
        callee = call.attrs["callee"]
        function = symbols[callee]
        if is_declaration(function) and callee not in bodies:
            continue
        if len(function.region.blocks) > 1:
            raise PassError(call, f"calls @{callee}, whose body has several blocks; a named computation can hold one")
        if callee in bodies and not warned:
            context.diagnostics.warn(call, f"function @{callee} is called several times: its body is copied")
            warned = True
        bodies[callee] = _replace_call(call, function, bodies.get(callee), meshes)
    for name in bodies:
        symbols.erase(name)


def _replace_call(call: Op, function: Op, earlier: Op | None, meshes: ModuleMeshes) -> Op:
    """Replace the call by a named computation, which takes over the callee's body or a copy of it."""
    computation = Op(
        _COMPUTATION,
        call.operands,
        [result.type for result in call.results],
        _attributes(call, function, earlier, meshes),
        region_count=1,
        location=call.place,
    ).insert_before(call)
    if earlier is not None:
        clone_region_into(earlier.region, computation.region, {})
    else:
        computation.region.take_body(function.region)
        terminator = computation.region.block.terminator
        terminator.rename("sdy.return")
    for old, new in zip(call.results, computation.results):
        old.replace_uses(new)
    call.erase()
    return computation


def _attributes(call: Op, function: Op, earlier: Op | None, meshes: ModuleMeshes) -> dict[str, Any]:
    attrs = {name: attr for name, attr in call.attrs.items() if name not in _CALL_ATTRIBUTES}
    attrs["name"] = original_name(function)
    if "execution_thread" in function.attrs:
        attrs["execution_thread"] = function.attrs["execution_thread"]
    if earlier is not None:
        in_shardings = earlier.attrs.get("in_shardings")
    else:
        in_shardings = all_arg_shardings(function, meshes)
    if in_shardings is not None:
        attrs["in_shardings"] = in_shardings
    if SHARDING in call.attrs:
        attrs["out_shardings"] = call.attrs[SHARDING]
    return attrs
