"""The directions that an op may use in each round.

Source: docs/semantics/propagation.md#op-priorities
"""

from __future__ import annotations

from functools import lru_cache

from pyshardy.core.intern import register_cache
from pyshardy.propagation.program import Direction
from pyshardy.rules.properties import Priority
from pyshardy.rules.rule import FactorKind, Rule

ROUNDS = 5
"""Number of op-priority rounds."""
LAST_ROUND = ROUNDS - 1
"""The round in which every op may use every direction; the only round without op priorities."""

_NONE, _FORWARD, _BACKWARD, _BOTH = Direction.NONE, Direction.FORWARD, Direction.BACKWARD, Direction.BOTH

_DIRECTIONS: dict[Priority, tuple[tuple[Direction, Direction], ...]] = {
    # per round: direction of pass-through factors, direction of the other factors
    Priority.PASS_THROUGH: ((_BOTH, _BOTH),) * ROUNDS,
    Priority.FORWARD: ((_FORWARD, _FORWARD), (_FORWARD, _FORWARD), (_BOTH, _FORWARD), (_BOTH, _BOTH), (_BOTH, _BOTH)),
    Priority.BROADCAST: ((_NONE, _NONE), (_NONE, _NONE), (_BACKWARD, _NONE), (_BACKWARD, _BACKWARD), (_BOTH, _BOTH)),
    Priority.OTHER: ((_NONE, _NONE), (_NONE, _NONE), (_BOTH, _NONE), (_BOTH, _BOTH), (_BOTH, _BOTH)),
}


def directions(rule: Rule, priority: Priority, fixed: Direction, round_: int) -> tuple[Direction, ...]:
    """Direction per factor of an op in a round; blocked factors never move.

    In round 0, ops of priority PASS_THROUGH and FORWARD wait while an operand is used more than once. The caller
    checks this, because it depends on the program.

    >>> from pyshardy.rules.rule_builder import identity_rule
    >>> directions(identity_rule((8,)), Priority.OTHER, Direction.BOTH, 1)
    (<Direction.NONE: 0>,)
    """
    return scheduled(rule, priority, fixed, round_)[0]


def scheduled(rule: Rule, priority: Priority, fixed: Direction, round_: int) -> tuple[tuple[Direction, ...], int]:
    """The directions of an op in a round, and the rounds in which it has the same ones, as a bit set.

    >>> from pyshardy.rules.rule_builder import identity_rule
    >>> scheduled(identity_rule((8,)), Priority.OTHER, Direction.BOTH, 1)
    ((<Direction.NONE: 0>,), 3)
    """
    return _all_rounds(rule.kinds, rule.blocked, priority, fixed)[round_]


@lru_cache(maxsize=4096)
def _all_rounds(
    kinds: tuple[FactorKind, ...], blocked: tuple[int, ...], priority: Priority, fixed: Direction
) -> tuple[tuple[tuple[Direction, ...], int], ...]:
    of_classes = ((fixed, fixed),) * ROUNDS if priority is Priority.FIXED else _DIRECTIONS[priority]
    given = [
        tuple(
            [
                _NONE if factor in blocked else passing if kind is FactorKind.PASS_THROUGH else other
                for factor, kind in enumerate(kinds)
            ]
        )
        for passing, other in of_classes
    ]
    return tuple([(one, sum([1 << round_ for round_ in range(ROUNDS) if given[round_] == one])) for one in given])


register_cache(_all_rounds.cache_clear)
