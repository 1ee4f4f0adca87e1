"""The options and their defaults.

Source: docs/semantics/propagation.md#passes
Source: docs/semantics/propagation.md#strategies
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from pyshardy.propagation.options import PropagateOptions, StrategyOption
from pyshardy.propagation.step import Strategy


def test_defaults_are_those_of_the_reference() -> None:
    assert PropagateOptions() == PropagateOptions(
        strategy=StrategyOption.AGGRESSIVE, op_priorities=True, user_priorities=True, conservative=False, trace=False
    )


@pytest.mark.parametrize(
    ("text", "strategies"),
    [
        ("basic", (Strategy.BASIC,)),
        ("aggressive", (Strategy.AGGRESSIVE,)),
        ("basic-then-aggressive", (Strategy.BASIC, Strategy.AGGRESSIVE)),
    ],
)
def test_strategies(text: str, strategies: tuple[Strategy, ...]) -> None:
    assert StrategyOption(text).strategies == strategies


def test_every_strategy_option_has_its_runs() -> None:
    assert all(option.strategies for option in StrategyOption)


def test_an_unknown_strategy() -> None:
    with pytest.raises(ValueError, match="'greedy' is not a valid StrategyOption"):
        StrategyOption("greedy")


def test_options_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        PropagateOptions().trace = True  # type: ignore[misc]
