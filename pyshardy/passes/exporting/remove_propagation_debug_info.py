"""`sdy-remove-propagation-debug-info`: removes sharding origins and propagation edges.

Source: docs/semantics/export.md#sdy-remove-propagation-debug-info
"""

from __future__ import annotations

from pyshardy.ir.attributes import Attributes
from pyshardy.ir.codecs import LISTS
from pyshardy.ir.functions import change_border_attrs
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.op_lists import ops_in
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext

_DEBUG = tuple(
    f"sdy.{prefix}{kind}"
    for kind in ("propagation_edges", "sharding_origins")
    for prefix in ("", "block_arg_", "result_")
)
_DEBUG_NAMES = frozenset(_DEBUG)


class RemovePropagationDebugInfo(Pass):
    """Remove sharding origins and propagation edges from all ops, arguments and results."""

    name = "sdy-remove-propagation-debug-info"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        for inner in walk(op):
            if inner.name == "func.func":
                change_border_attrs(inner, without_debug_info)
            elif not _DEBUG_NAMES.isdisjoint(inner.attrs):
                inner.attrs = without_debug_info(inner.attrs)


def has_debug_info(root: Op) -> bool:
    """Whether an op, argument or result of a module has sharding origins or propagation edges."""
    for op in ops_in(root):
        attrs = op.attrs
        if not _DEBUG_NAMES.isdisjoint(attrs):
            return True
        if op.name == "func.func" and any(
            not _DEBUG_NAMES.isdisjoint(entry) for kind in LISTS for entry in attrs.get(kind, ())
        ):
            return True
    return False


def without_debug_info(attrs: Attributes) -> Attributes:
    """Attributes without sharding origins and propagation edges."""
    for name in _DEBUG:
        attrs = attrs.without(name)
    return attrs
