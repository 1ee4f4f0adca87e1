"""`sdy-aggressive-propagate`: propagates once per strategy.

Source: docs/semantics/propagation.md#strategies
"""

from __future__ import annotations

from dataclasses import replace

from pyshardy.passes.propagating.basic_propagate import BasicPropagate
from pyshardy.propagation.options import PropagateOptions, StrategyOption


class AggressivePropagate(BasicPropagate):
    """Propagate shardings, and resolve conflicts by sizes.

    Attributes:
        propagation_strategy: How conflicts are resolved: basic, aggressive or basic-then-aggressive.
    """

    name = "sdy-aggressive-propagate"

    propagation_strategy: StrategyOption = StrategyOption.AGGRESSIVE

    def options(self) -> PropagateOptions:  # noqa: D102
        return replace(super().options(), strategy=self.propagation_strategy)
