"""`sdy-remove-propagation-debug-info`: sharding origins and propagation edges go.

Source: docs/semantics/export.md#sdy-remove-propagation-debug-info
"""

from __future__ import annotations

from pyshardy.ir.attributes import Attributes
from pyshardy.ir.functions import change_border_attrs
from pyshardy.ir.nodes import Op, walk
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext

_DEBUG = tuple(
    f"sdy.{prefix}{kind}"
    for kind in ("propagation_edges", "sharding_origins")
    for prefix in ("", "block_arg_", "result_")
)


class RemovePropagationDebugInfo(Pass):
    """Remove sharding origins and propagation edges from all ops, arguments and results."""

    name = "sdy-remove-propagation-debug-info"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        for inner in walk(op):
            if inner.name == "func.func":
                change_border_attrs(inner, _without_debug_info)
            else:
                inner.attrs = _without_debug_info(inner.attrs)


def _without_debug_info(attrs: Attributes) -> Attributes:
    for name in _DEBUG:
        attrs = attrs.without(name)
    return attrs
