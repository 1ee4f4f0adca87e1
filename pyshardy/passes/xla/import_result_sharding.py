"""`pyshardy-import-result-sharding`: gives the only result of a program the sharding of the op that computes it."""

from __future__ import annotations

from typing import NamedTuple

from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.ir.functions import (
    SHARDING,
    arg_sharding,
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
    """Give the only result of the main function the sharding of the op that computes it, also through calls.

    A result that is an argument gets the sharding of the argument. Shardings of the ops without effect between them are
    dropped.
    """

    name = "pyshardy-import-result-sharding"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        main = main_function(op)
        if is_declaration(main) or result_count(main) != 1:
            return
        table = SymbolTable(op)
        path = _path_to_argument(main, table) if result_sharding(main, 0) is None else None
        if path is not None:
            sharding = arg_sharding(main, path.argument)
            for passed in path.ops:
                passed.remove_attr(SHARDING)
        else:
            sharding = _sharding_of_only_result(main, table)
        if sharding is None or not mesh_of(sharding, context.meshes).axes:
            return
        set_result_sharding(main, 0, sharding)
        owner = return_op(main).operands[0].defining_op
        if owner is not None and SHARDING in owner.attrs:
            owner.remove_attr(SHARDING)


class _Path(NamedTuple):
    """A result that equals an argument: the argument, and the ops without effect between the two."""

    argument: int
    ops: list[Op]


def _path_to_argument(main: Op, table: SymbolTable) -> _Path | None:
    """The way from the only result of the main function to the argument that it is; None if it is none."""
    value, passed, calls = return_op(main).operands[0], list[Op](), list[Op]()
    while True:
        owner = value.defining_op
        if owner is None and not calls:
            return _Path(value.index, passed)
        if owner is None:
            value = calls.pop().operands[value.index]
            continue
        callee = table.callee(owner) if owner.name == "func.call" else None
        if _does_nothing(owner):
            value = owner.operands[0]
        elif callee is not None and not is_declaration(callee) and owner not in passed:
            calls.append(owner)
            value = return_op(callee).operands[value.index]
        else:
            return None
        passed.append(owner)


def _does_nothing(op: Op) -> bool:
    """Whether XLA takes the operand in the place of the result."""
    if not op.operands or len(op.results) != 1 or op.operands[0].type != op.result.type:
        return False
    if op.name == "stablehlo.transpose":
        permutation = op.attrs["permutation"]
        return all(permutation[dim] == dim for dim in range(op.result.type.rank))
    return op.name in _MAY_DO_NOTHING or (op.name == "stablehlo.concatenate" and len(op.operands) == 1)


def _sharding_of_only_result(main: Op, table: SymbolTable) -> TensorSharding | None:
    """The sharding of the only result of the program.

    It is looked for at the result of a called function, then at the op that computes it, then at the innermost call.

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
