"""Consecutive rounds of a stretch that are of consecutive layers, by what the rounds vote for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from pyshardy.searching.autopartition.stretches import LEAST_ROUNDS, Stretch


class Layer(NamedTuple):
    """A layer of a family, both by their numbers."""

    family: int
    layer: int


class Span(NamedTuple):
    """Consecutive rounds that belong to the layers of one family, in order.

    Attributes:
        first: The first round.
        last: The last one.
        family: The number of the family.
        sign: Whether layers come in the order of the family, 1, or in the opposite one, -1.
        base: The layer of round 0.
    """

    first: int
    last: int
    family: int
    sign: int
    base: int

    def part(self, stretch: Stretch) -> Stretch:
        """The part of a stretch with these rounds."""
        return Stretch(stretch.start + self.first * stretch.period, stretch.period, self.last - self.first + 1)


class Joined(NamedTuple):
    """A stretch of which several rounds are taken together.

    Attributes:
        stretch: The stretch with these rounds.
        together: The number of its rounds before that are one round here.
        votes: The layers that each round is of, with their votes. If a round is made of several, all of them vote for
            these layers.
    """

    stretch: Stretch
    together: int
    votes: list[Counter[Layer]]


def joined(stretch: Stretch, votes: Sequence[Counter[Layer]], together: int, shift: int) -> Joined:
    """A stretch of which several rounds are taken together.

    Args:
        stretch: The stretch.
        votes: The votes of its rounds.
        together: The number of its rounds that are one round.
        shift: The number of its rounds before the first one.
    """
    start, period, rounds = stretch
    whole = Stretch(start + shift * period, period * together, (rounds - shift) // together)
    groups = [votes[at : at + together] for at in range(shift, rounds - together + 1, together)]
    return Joined(whole, together, [one[0] if together == 1 else _agreed([*filter(None, one)]) for one in groups])


def _agreed(votes: Sequence[Counter[Layer]]) -> Counter[Layer]:
    """The sums of the votes for layers for which all vote."""
    total = sum(votes, Counter[Layer]())
    return Counter({one: total[one] for one in total if all(one in each for each in votes)})


def spans(votes: Sequence[Counter[Layer]]) -> list[Span]:
    """The spans for which most of their rounds vote, in order. Of two that overlap, the one with more votes stays.

    Args:
        votes: The votes of every round.
    """
    weights: Counter[tuple[int, int, int]] = Counter()
    rounds: dict[tuple[int, int, int], list[int]] = {}
    for round_, found in enumerate(votes):
        for one, weight in found.items():
            for sign in (1, -1):
                place = one.family, sign, one.layer - sign * round_
                weights[place] += weight
                rounds.setdefault(place, []).append(round_)
    taken: list[Span] = []
    for place in sorted(weights, key=lambda place: (-weights[place], place)):
        free = [at for at in rounds[place] if not any(one.first <= at <= one.last for one in taken)]
        if free and 2 * len(free) > free[-1] - free[0] + 1 >= LEAST_ROUNDS:
            taken.append(Span(free[0], free[-1], *place))
    return sorted(taken)
