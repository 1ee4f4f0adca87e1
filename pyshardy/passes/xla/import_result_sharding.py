"""`pyshardy-import-result-sharding`: a program with one result has it sharded as the op that computes it."""

from __future__ import annotations

from pyshardy.core.sharding import TensorSharding, mesh_of
from pyshardy.ir.functions import (
    SHARDING,
    is_declaration,
    main_function,
    result_count,
    result_sharding,
    return_op,
    set_result_sharding,
)
from pyshardy.ir.nodes import Op
from pyshardy.passes.base import Pass, PassContext


class ImportResultSharding(Pass):
    """Let the only result of the main function have the sharding of the op that it comes from."""

    name = "pyshardy-import-result-sharding"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        main = main_function(op)
        if is_declaration(main) or result_count(main) != 1:
            return
        owner = return_op(main).operands[0].defining_op
        sharding = None if owner is None else _sharding_of(owner, return_op(main).operands[0].index)
        is_maximal = sharding is not None and not mesh_of(sharding, context.meshes).axes
        if sharding is not None and not is_maximal and result_sharding(main, 0) is None:
            set_result_sharding(main, 0, sharding)
        if owner is not None and sharding is not None and not is_maximal and SHARDING in owner.shared_attrs:
            del owner.attrs[SHARDING]


def _sharding_of(op: Op, index: int) -> TensorSharding | None:
    found: TensorSharding | tuple[TensorSharding, ...] | None = op.shared_attrs.get(
        {"sdy.sharding_constraint": "sharding", "sdy.manual_computation": "out_shardings"}.get(op.name, SHARDING)
    )
    return found[index] if isinstance(found, tuple) else found
