"""`sdy-user-priority-propagate`: propagates by the priorities that users gave.

Source: docs/semantics/propagation.md#user-priorities
"""

from __future__ import annotations

from dataclasses import replace

from pyshardy.passes.propagating.op_priority_propagate import OpPriorityPropagate
from pyshardy.propagation.options import PropagateOptions


class UserPriorityPropagate(OpPriorityPropagate):
    """Propagate shardings once per user priority, the most important first."""

    name = "sdy-user-priority-propagate"

    def options(self) -> PropagateOptions:  # noqa: D102
        return replace(super().options(), user_priorities=True)
