"""`pyshardy-import-result-sharding`: gives the only result of a program the sharding of the op that computes it."""

from __future__ import annotations

from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.ir.functions import (
    SHARDING,
    is_declaration,
    main_function,
    result_count,
    result_sharding,
    return_op,
    set_result_sharding,
)
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.symbols import SymbolTable
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext

_MAY_DO_NOTHING = frozenset(("stablehlo.slice", "stablehlo.reshape", "stablehlo.convert"))


class ImportResultSharding(Pass):
    """Give the only result of the main function the sharding of the op that computes it, also through calls."""

    name = "pyshardy-import-result-sharding"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        main = main_function(op)
        if is_declaration(main) or result_count(main) != 1:
            return
        sharding = _sharding_of_only_result(main, SymbolTable(op))
        if sharding is None or not mesh_of(sharding, context.meshes).axes:
            return
        set_result_sharding(main, 0, sharding)
        owner = return_op(main).operands[0].defining_op
        if owner is not None and SHARDING in owner.attrs:
            owner.remove_attr(SHARDING)


def _sharding_of_only_result(main: Op, table: SymbolTable) -> TensorSharding | None:
    """The sharding of a called function's result, else of the op that computes it, else of the innermost call with one.

    In HLO, the sharding of an op without effect moves to the op that computes its operand, unless that is an argument.
    """
    function, passed, found = main, set[Op](), None
    while function not in passed:
        passed.add(function)
        if (own := result_sharding(function, 0)) is not None:
            return own
        value = return_op(function).operands[0]
        here: TensorSharding | None = None
        while (owner := value.defining_op) is not None:
            here = here or _sharding_of(value)
            if owner.name not in _MAY_DO_NOTHING or owner.operands[0].type != value.type:
                break
            value = owner.operands[0]
        if owner is None:
            break
        found = here or found
        callee = table.callee(owner) if owner.name == "func.call" else None
        if callee is None or is_declaration(callee) or result_count(callee) != 1:
            break
        function = callee
    return found


def _sharding_of(value: Value) -> TensorSharding | None:
    op = value.defining_op
    assert op is not None
    name = {"sdy.sharding_constraint": "sharding", "sdy.manual_computation": "out_shardings"}.get(op.name, SHARDING)
    found: TensorSharding | tuple[TensorSharding, ...] | None = op.attrs.get(name)
    return found[value.index] if isinstance(found, tuple) else found
