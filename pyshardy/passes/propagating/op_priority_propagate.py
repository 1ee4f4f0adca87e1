"""`sdy-op-priority-propagate`: element-wise ops first.

Source: docs/semantics/propagation.md#op-priorities
"""

from __future__ import annotations

from dataclasses import replace

from pyshardy.passes.propagating.aggressive_propagate import AggressivePropagate
from pyshardy.propagation.options import PropagateOptions


class OpPriorityPropagate(AggressivePropagate):
    """Propagate shardings in five rounds, from ops that pass them through to all others.

    Attributes:
        run_op_priority_propagation: Whether kinds of ops take turns; if not, all are visited in one round.
    """

    name = "sdy-op-priority-propagate"

    run_op_priority_propagation: bool = True

    def options(self) -> PropagateOptions:  # noqa: D102
        return replace(super().options(), op_priorities=self.run_op_priority_propagation)
