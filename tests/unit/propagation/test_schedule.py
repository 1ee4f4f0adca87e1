"""Directions per round of op priorities.

Source: docs/semantics/propagation.md#op-priorities
"""

from __future__ import annotations

import pytest

from pyshardy.propagation.program import Direction
from pyshardy.propagation.schedule import LAST_ROUND, ROUNDS, directions, scheduled
from pyshardy.rules.notation import parse_rule
from pyshardy.rules.properties import Priority

NONE, FORWARD, BACKWARD, BOTH = Direction
RULE = parse_rule(
    "<([i, j], [k, l], [m])->([i]) {i=8, j=8, k=8, l=8, m=8} reduction={j} need_replication={k} permutation={l} "
    "blocked_propagation={m}>"
)
TABLE = {
    # per round, the direction of pass-through factors and that of the others
    Priority.PASS_THROUGH: [(BOTH, BOTH)] * 5,
    Priority.FORWARD: [(FORWARD, FORWARD), (FORWARD, FORWARD), (BOTH, FORWARD), (BOTH, BOTH), (BOTH, BOTH)],
    Priority.BROADCAST: [(NONE, NONE), (NONE, NONE), (BACKWARD, NONE), (BACKWARD, BACKWARD), (BOTH, BOTH)],
    Priority.OTHER: [(NONE, NONE), (NONE, NONE), (BOTH, NONE), (BOTH, BOTH), (BOTH, BOTH)],
}


def test_the_last_round() -> None:
    assert (ROUNDS, LAST_ROUND) == (5, 4)


@pytest.mark.parametrize("priority", TABLE)
@pytest.mark.parametrize("round_", range(ROUNDS))
def test_directions(priority: Priority, round_: int) -> None:
    passing, other = TABLE[priority][round_]
    # i passes through; j, k and l are reduced, gathered and permuted; m is blocked
    assert directions(RULE, priority, BOTH, round_) == (passing, other, other, other, NONE)


@pytest.mark.parametrize("fixed", Direction)
@pytest.mark.parametrize("round_", range(ROUNDS))
def test_a_direction_of_its_own_holds_in_every_round(fixed: Direction, round_: int) -> None:
    assert directions(RULE, Priority.FIXED, fixed, round_) == (fixed,) * 4 + (NONE,)


@pytest.mark.parametrize(
    ("priority", "classes"),
    [
        (Priority.PASS_THROUGH, [{0, 1, 2, 3, 4}]),
        (Priority.FORWARD, [{0, 1}, {2}, {3, 4}]),
        (Priority.BROADCAST, [{0, 1}, {2}, {3}, {4}]),
        (Priority.OTHER, [{0, 1}, {2}, {3, 4}]),
        (Priority.FIXED, [{0, 1, 2, 3, 4}]),
    ],
)
def test_rounds_with_the_same_directions(priority: Priority, classes: list[set[int]]) -> None:
    for rounds in classes:
        for round_ in rounds:
            _, found = scheduled(RULE, priority, BACKWARD, round_)
            assert {other for other in range(ROUNDS) if found >> other & 1} == rounds


def test_without_special_factors_two_rounds_become_one() -> None:
    rule = parse_rule("<([i])->([i]) {i=8}>")
    assert scheduled(rule, Priority.OTHER, BOTH, 2)[1] == 0b11100
