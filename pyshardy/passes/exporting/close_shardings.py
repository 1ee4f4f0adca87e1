"""`sdy-close-shardings`: makes all shardings final.

Source: docs/semantics/export.md#sdy-close-shardings
"""

from __future__ import annotations

from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import transform_shardings
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext


class CloseShardings(Pass):
    """Close every dimension of every sharding and drop explicitly replicated axes."""

    name = "sdy-close-shardings"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        transform_shardings(op, TensorSharding.closed)
