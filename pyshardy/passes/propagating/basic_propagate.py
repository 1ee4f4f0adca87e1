"""`sdy-basic-propagate`: propagates once, without resolving conflicts.

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
    """Propagate shardings along factors without conflicts.

    Attributes:
        keep_sharding_rules: Whether ops keep the rules.
        module_dump_directory: The directory to which the module is written after every user priority except the last.
        module_dump_index: The number of the first of these files.
        conservative_propagation: Whether to propagate neither sub-axes nor axes that do not divide a dimension.
        debug_sharding_origins: Whether to record, per axis, the annotation it originates from.
        debug_propagation_edge_sharding: Whether to record, per axis, the op and the step that propagated it.
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
        """The options of the core."""
        return PropagateOptions(
            StrategyOption.BASIC,
            op_priorities=False,
            user_priorities=False,
            conservative=self.conservative_propagation,
            trace=self.trace,
        )
