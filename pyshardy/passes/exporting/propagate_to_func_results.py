"""`sdy-propagate-to-func-results`: gives function results the shardings of the returned values.

Source: docs/semantics/export.md#sdy-propagate-to-func-results
"""

from __future__ import annotations

from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.ir.functions import (
    functions,
    is_declaration,
    main_function,
    result_sharding,
    return_op,
    set_result_shardings,
)
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import ModuleMeshes, get_sharding
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext


class PropagateToFuncResults(Pass):
    """Set the result shardings of every function to those of the returned values; in main, only missing ones."""

    name = "sdy-propagate-to-func-results"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        main, meshes = main_function(op), context.meshes
        for function in functions(op):
            if is_declaration(function):
                continue
            shardings = {
                index: _on_many_devices(get_sharding(value), meshes)
                for index, value in enumerate(return_op(function).operands)
                if function is not main or result_sharding(function, index) is None
            }
            set_result_shardings(function, shardings)


def _on_many_devices(sharding: TensorSharding | None, meshes: ModuleMeshes) -> TensorSharding | None:
    """The sharding; None if it is on a single device, as functions cannot return such results."""
    return None if sharding is None or mesh_of(sharding, meshes).is_single_device else sharding
