"""Which directions an op may use in which round.

Source: docs/semantics/propagation.md#op-priorities
"""

from __future__ import annotations

from functools import lru_cache

from pyshardy.core.intern import register_cache
from pyshardy.graph.program import Direction
from pyshardy.rules.properties import Priority
from pyshardy.rules.rule import FactorKind, Rule

ROUNDS = 5
"""Number of op-priority rounds."""
LAST_ROUND = ROUNDS - 1
"""The round in which every op may use every direction: also what runs without op priorities."""

_NONE, _FORWARD, _BACKWARD, _BOTH = Direction.NONE, Direction.FORWARD, Direction.BACKWARD, Direction.BOTH

_DIRECTIONS: dict[Priority, tuple[tuple[Direction, Direction], ...]] = {
    # per round: direction of pass-through factors, direction of the others
    Priority.PASS_THROUGH: ((_BOTH, _BOTH),) * ROUNDS,
    Priority.FORWARD: ((_FORWARD, _FORWARD), (_FORWARD, _FORWARD), (_BOTH, _FORWARD), (_BOTH, _BOTH), (_BOTH, _BOTH)),
    Priority.BROADCAST: ((_NONE, _NONE), (_NONE, _NONE), (_BACKWARD, _NONE), (_BACKWARD, _BACKWARD), (_BOTH, _BOTH)),
    Priority.OTHER: ((_NONE, _NONE), (_NONE, _NONE), (_BOTH, _NONE), (_BOTH, _BOTH), (_BOTH, _BOTH)),
}


def directions(rule: Rule, priority: Priority, fixed: Direction, round_: int) -> tuple[Direction, ...]:
    """Direction per factor of an op in a round; blocked factors never move.

    Ops of priority PASS_THROUGH and FORWARD wait in round 0 while an operand is used more than once; that
    depends on the program and is the caller's to check.

    >>> from pyshardy.rules.rule_builder import identity_rule
    >>> directions(identity_rule((8,)), Priority.OTHER, Direction.BOTH, 1)
    (<Direction.NONE: 0>,)
    """
    return _directions(rule.kinds, rule.blocked, priority, fixed, round_)


@lru_cache(maxsize=4096)
def _directions(
    kinds: tuple[FactorKind, ...], blocked: tuple[int, ...], priority: Priority, fixed: Direction, round_: int
) -> tuple[Direction, ...]:
    passing, other = (fixed, fixed) if priority is Priority.FIXED else _DIRECTIONS[priority][round_]
    return tuple(
        [
            _NONE if factor in blocked else passing if kind is FactorKind.PASS_THROUGH else other
            for factor, kind in enumerate(kinds)
        ]
    )


register_cache(_directions.cache_clear)


def same_rounds(rule: Rule, priority: Priority, fixed: Direction, round_: int) -> int:
    """Bit set of the rounds in which an op uses the same directions as in this one."""
    return _same_rounds(rule.kinds, rule.blocked, priority, fixed, round_)


@lru_cache(maxsize=4096)
def _same_rounds(
    kinds: tuple[FactorKind, ...], blocked: tuple[int, ...], priority: Priority, fixed: Direction, round_: int
) -> int:
    given = [_directions(kinds, blocked, priority, fixed, other) for other in range(ROUNDS)]
    return sum([1 << other for other in range(ROUNDS) if given[other] == given[round_]])


register_cache(_same_rounds.cache_clear)
