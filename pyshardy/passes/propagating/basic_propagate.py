"""`sdy-basic-propagate`: one run that resolves no conflicts.

Source: docs/semantics/propagation.md#passes
"""

from __future__ import annotations

from pyshardy.ir.nodes import Op
from pyshardy.passes.base import Pass
from pyshardy.passes.propagation_pass import propagate_module
from pyshardy.propagation.options import PropagateOptions, StrategyOption
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.debug_info import DebugOptions


class BasicPropagate(Pass):
    """Propagate shardings where nothing conflicts.

    Attributes:
        keep_sharding_rules: Whether the rules stay on the ops.
        module_dump_directory: A folder into which the module is written after every user priority except the last.
        module_dump_index: The number that the names of these files start with.
        conservative_propagation: Whether sub-axes are refused, and axes that do not divide.
        debug_sharding_origins: Whether to write which annotation every axis goes back to.
        debug_propagation_edge_sharding: Whether to write through which op, and in which step, every axis moved.
        trace: Whether to record every step, for explanations.
    """

    name = "sdy-basic-propagate"
    own_options = frozenset(("module_dump_index", "trace"))

    keep_sharding_rules: bool = False
    module_dump_directory: str = ""
    module_dump_index: int = 0
    conservative_propagation: bool = False
    debug_sharding_origins: bool = False
    debug_propagation_edge_sharding: bool = False
    trace: bool = False

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        debug = DebugOptions(self.debug_sharding_origins, self.debug_propagation_edge_sharding)
        dumps = self.module_dump_directory, self.module_dump_index
        propagate_module(op, context, self.options(), self.keep_sharding_rules, debug, dumps)

    def options(self) -> PropagateOptions:
        """How this pass propagates."""
        return PropagateOptions(
            StrategyOption.BASIC,
            op_priorities=False,
            user_priorities=False,
            conservative=self.conservative_propagation,
            trace=self.trace,
        )
