"""Reductions over windows.

Source: docs/semantics/partitioner.md#windows
"""

from __future__ import annotations

from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op
from pyshardy.transforms.local.checks import check_runs_locally
from pyshardy.transforms.local.localizer import Localizer


def localize_window_op(op: Op, local: Localizer) -> None:
    """Keep the op, if no window along a sharded dimension needs elements of other shards."""
    facts = local.context.specs.spec(op)
    rank = len(local.global_shape(op.operands[0]))
    sizes = facts.attr("window_dimensions", None) or (1,) * rank
    strides = facts.attr("window_strides", None) or (1,) * rank
    padding = facts.attr("padding", None) or ((0, 0),) * rank
    for dim, count in enumerate(local.shard_counts(op.operands[0])):
        passes = tuple(padding[dim]) == (0, 0) and (
            (sizes[dim] == 1 and strides[dim] == 1) or strides[dim] >= sizes[dim]
        )
        if count > 1 and not passes:
            raise PassError(op, f"has windows along dimension {dim}, which is sharded, that may be on several devices")
    check_runs_locally(op, local)
    local.keep(op)
