"""`sdy-op-priority-propagate`: propagates through element-wise ops first.

Source: docs/semantics/propagation.md#op-priorities
"""

from __future__ import annotations

from dataclasses import replace

from pyshardy.passes.propagating.aggressive_propagate import AggressivePropagate
from pyshardy.propagation.options import PropagateOptions


class OpPriorityPropagate(AggressivePropagate):
    """Propagate shardings in five rounds: first through pass-through ops, at the end through all ops.

    Attributes:
        run_op_priority_propagation: Whether to propagate in rounds; if not, all ops take part from the start.
    """

    name = "sdy-op-priority-propagate"

    run_op_priority_propagation: bool = True

    def options(self) -> PropagateOptions:  # noqa: D102
        return replace(super().options(), op_priorities=self.run_op_priority_propagation)
