"""The options of propagation; but for the view, with the defaults of the reference."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import ClassVar

from pyshardy.core.options import Options, enum_value
from pyshardy.propagation.step import Strategy


class StrategyOption(Enum):
    """The strategies of one round, in order."""

    BASIC = "basic"
    AGGRESSIVE = "aggressive"
    BASIC_THEN_AGGRESSIVE = "basic-then-aggressive"

    @property
    def strategies(self) -> tuple[Strategy, ...]:
        """The runs this stands for."""
        return _STRATEGIES[self]


_STRATEGIES = {
    StrategyOption.BASIC: (Strategy.BASIC,),
    StrategyOption.AGGRESSIVE: (Strategy.AGGRESSIVE,),
    StrategyOption.BASIC_THEN_AGGRESSIVE: (Strategy.BASIC, Strategy.AGGRESSIVE),
}


class View(Enum):
    """Which form of a program is propagated through: results depend on the order and the form of its ops."""

    XLA = "xla"
    """As XLA hands it to Shardy: what `jax.jit` does with the program."""
    HLO = "hlo"
    """As XLA hands it to Shardy where XLA has rewritten it already, as programs in HLO are: calls are inlined."""
    STABLEHLO = "stablehlo"
    """As it stands: what Shardy's own passes do with it."""


class PropagateOptions(Options):
    """How shardings propagate. Strategies and views are given as such or by name, `strategy="basic"`.

    Source: docs/semantics/propagation.md#passes
    Source: docs/semantics/propagation.md#schedules

    Attributes:
        strategy: How conflicts between the tensors of one op are resolved.
        op_priorities: Whether ops take part in five rounds, element-wise ops first.
        user_priorities: Whether the priorities on dimensions are obeyed.
        conservative: Whether sub-axes and axes that do not divide a dimension are avoided.
        trace: Whether to record every step, for explanations.
        origins: Whether to write at every tensor which annotation its axes go back to, as `sdy.sharding_origins`.
        edges: Whether to write at every op through which of its tensors axes moved, as `sdy.propagation_edges`.
        dump_directory: A folder into which the pipeline writes the module before and after propagation, between
            user priorities, and at the end; nowhere if it is empty.
        dedup_functions_fully: Whether all calls of a function share one sharding of its body; if not, each call has
            its own, and the function is copied where they differ.
        explicit_gather_scatter_batching: Whether gathers and scatters whose rows are indexed by their own number get
            batching dimensions before propagation.
        view: Which form of the program.

    Raises:
        UsageError: A value that is none of its type, or a name that there is not.

    >>> PropagateOptions(strategy="basic").strategy
    <StrategyOption.BASIC: 'basic'>
    """

    of: ClassVar[str] = "propagation"

    strategy: StrategyOption = StrategyOption.AGGRESSIVE
    op_priorities: bool = True
    user_priorities: bool = True
    conservative: bool = False
    trace: bool = False
    origins: bool = False
    edges: bool = False
    dump_directory: str = ""
    dedup_functions_fully: bool = False
    explicit_gather_scatter_batching: bool = False
    view: View = View.XLA

    def with_view(self, view: View | str | None) -> PropagateOptions:
        """The same with another view; the same if there is none."""
        return self if view is None else replace(self, view=view_of(view))


def view_of(view: View | str) -> View:
    """A view by its name.

    Raises:
        UsageError: There is no such view.

    >>> view_of("stablehlo")
    <View.STABLEHLO: 'stablehlo'>
    """
    return enum_value(View, view, "choosing the view of a program")
