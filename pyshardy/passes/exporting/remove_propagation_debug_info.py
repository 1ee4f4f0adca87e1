"""`sdy-remove-propagation-debug-info`: sharding origins and propagation edges go.

Source: docs/semantics/export.md#sdy-remove-propagation-debug-info
"""

from __future__ import annotations

from pyshardy.ir.nodes import Op, walk
from pyshardy.passes.base import Pass, PassContext

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
                attrs = inner.shared_attrs
                dictionaries = [*(attrs.get("arg_attrs") or ()), *(attrs.get("res_attrs") or ())]
            else:
                dictionaries = [inner.attrs]
            for attrs in dictionaries:
                for name in _DEBUG:
                    attrs.pop(name, None)
