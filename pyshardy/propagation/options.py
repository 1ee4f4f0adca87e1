"""The options of propagation; all defaults but that of the view are those of the reference."""

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
        """The runs that this option stands for."""
        return _STRATEGIES[self]


_STRATEGIES = {
    StrategyOption.BASIC: (Strategy.BASIC,),
    StrategyOption.AGGRESSIVE: (Strategy.AGGRESSIVE,),
    StrategyOption.BASIC_THEN_AGGRESSIVE: (Strategy.BASIC, Strategy.AGGRESSIVE),
}


class View(Enum):
    """The form of a program to propagate through: results depend on the order and the form of its ops."""

    XLA = "xla"
    """As XLA passes it to Shardy: the result of `jax.jit`."""
    TPU = "tpu"
    """As XLA for TPUs passes it to Shardy: a scatter with one update per row is a comparison there."""
    HLO = "hlo"
    """As XLA passes it to Shardy after its own rewrites, as in HLO programs: calls are inlined."""
    STABLEHLO = "stablehlo"
    """As it stands: the result of Shardy's own passes."""

    @property
    def is_of_jit(self) -> bool:
        """Whether XLA's rewrites of what `jax.jit` lowers are part of it."""
        return self in (View.XLA, View.TPU)


class PropagateOptions(Options):
    """How shardings propagate. Strategies and views are given as enum members or by name, `strategy="basic"`.

    Source: docs/semantics/propagation.md#passes
    Source: docs/semantics/propagation.md#schedules

    Attributes:
        strategy: How conflicts between the tensors of one op are resolved.
        op_priorities: Whether ops take part in five rounds, element-wise ops first.
        user_priorities: Whether the priorities on dimensions are obeyed.
        conservative: Whether to avoid sub-axes and axes that do not divide a dimension.
        trace: Whether to record every step, for explanations.
        origins: Whether to write at every tensor which annotation its axes go back to, as `sdy.sharding_origins`.
        edges: Whether to write at every op through which of its tensors axes moved, as `sdy.propagation_edges`.
        dump_directory: A directory into which the pipeline writes the module before and after propagation, between
            user priorities, and at the end; nothing is written if it is empty.
        dedup_functions_fully: Whether all calls of a function share one sharding of its body. If not, each call has its
            own, and the function is copied where they differ.
        explicit_gather_scatter_batching: Whether gathers and scatters whose rows are indexed by their own number get
            batching dimensions before propagation.
        view: The form of the program.
        compiler: The compiler to ask for the form of the program, such as "tpu:v5e:2x4"; the view is then that
            compiler's own. Empty asks none. None asks the compiler of the platform that the program was lowered for, if
            that is a TPU or GPU and its compiler is installed.

    Raises:
        UsageError: A value of the wrong type, or an unknown name.

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
    compiler: str | None = None

    @property
    def alters_results(self) -> bool:
        """Whether shardings may differ from those of the defaults, for any view and compiler.

        >>> PropagateOptions(trace=True).alters_results, PropagateOptions(conservative=True).alters_results
        (False, True)
        """
        usual = PropagateOptions()
        return any(getattr(self, name) != getattr(usual, name) for name in _ALTERING)

    def with_view(self, view: View | str | None) -> PropagateOptions:
        """The same options with another view; unchanged if `view` is None."""
        return self if view is None else replace(self, view=view_of(view))


_ALTERING = (
    "strategy", "op_priorities", "user_priorities", "conservative", "dedup_functions_fully",
    "explicit_gather_scatter_batching",
)  # fmt: skip
"""The options that change shardings."""


def view_of(view: View | str) -> View:
    """A view by its name.

    Raises:
        UsageError: There is no such view.

    >>> view_of("stablehlo")
    <View.STABLEHLO: 'stablehlo'>
    """
    return enum_value(View, view, "choosing the view of a program")
