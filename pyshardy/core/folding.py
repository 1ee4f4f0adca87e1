"""Folds names that differ only in a number, such as those of repeated layers, into one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import product
from math import prod
from operator import add
from typing import NamedTuple

LEAST_FOLDED = 3
"""The fewest names to fold."""
_MOST_PER_LAYER = 32
"""The number of equal tensors of a layer to skip when looking for the one in the next layer."""
_MOST_NAMES = 1 << 20
"""The most names to unfold."""
_NUMBER = re.compile(r"(?<!\d)(\d{1,9})(?!\d)")
_RUN = re.compile(r"(?<!\d)(\d{1,9})(?:,(\d{1,9}))?\.\.(\d{1,9})(?!\d)")

_Skeleton = tuple[str, ...]


class Run(NamedTuple):
    """Numbers at equal distances.

    >>> print(Run(0, 23), Run(5, 5), Run(3, 27, 12))
    0..23 5 3,15..27
    """

    first: int
    last: int
    step: int = 1

    def __str__(self) -> str:
        if self.first == self.last:
            return str(self.first)
        second = "" if self.step == 1 else f",{self.first + self.step}"
        return f"{self.first}{second}..{self.last}"


class Folded(NamedTuple):
    """Names that are folded into one.

    Attributes:
        name: The folded name: `layers[0..23]['w1']`.
        members: The positions of their items, ascending.
    """

    name: str
    members: tuple[int, ...]


class _Names(NamedTuple):
    """Names with the same text between their numbers.

    Attributes:
        numbers: A run for every number in the name.
        members: The positions of their items.
    """

    numbers: tuple[Run, ...]
    members: tuple[int, ...]


def fold_names(items: Iterable[tuple[str, Hashable]]) -> list[Folded]:
    """Fold the names of items that are otherwise equal; results are ordered by their first items.

    Three or more names that differ in one number, by equal steps, are folded; then the next number is folded.

    Args:
        items: The name of every item, and a key that must be equal too.

    >>> [found.name for found in fold_names((f"layers[{layer}].w", "f32[8]") for layer in range(24))]
    ['layers[0..23].w']
    >>> [found.name for found in fold_names((f"weights[{number}]", number % 4 < 2) for number in range(16))]
    ['weights[0,4..12]', 'weights[1,5..13]', 'weights[2,6..14]', 'weights[3,7..15]']
    >>> [found.name for found in fold_names([("a[0]", 1), ("a[1]", 1), ("a[2]", 2)])]
    ['a[0]', 'a[1]', 'a[2]']
    """
    names: list[str] = []
    alike: dict[tuple[_Skeleton, Hashable], list[_Names]] = {}
    for position, (name, key) in enumerate(items):
        names.append(name)
        skeleton, numbers = _split(name)
        found = _Names(tuple(Run(number, number) for number in numbers), (position,))
        alike.setdefault((skeleton, key), []).append(found)
    folded = []
    for (skeleton, _), group in alike.items():
        for at in range(len(skeleton) - 1):
            group = _fold_at(group, at)
        folded += [_joined(skeleton, found, names) for found in group]
    return sorted(folded, key=lambda found: found.members[0])


def unfold(name: str, count: int) -> list[str] | None:
    """The names that a folded one stands for; None if these are not so many, or more than a million.

    >>> unfold("layers[0..2].w[1,5..9]", 9)[:4]
    ['layers[0].w[1]', 'layers[0].w[5]', 'layers[0].w[9]', 'layers[1].w[1]']
    >>> unfold("a[0..2]", 1), unfold("a[0..2]", 2)
    (['a[0..2]'], None)
    """
    if count == 1:
        return [name]
    parts = _RUN.split(name)
    runs = [_numbers(*parts[at : at + 3]) for at in range(1, len(parts), 4)]
    if prod(map(len, runs)) != count or count > _MOST_NAMES:
        return None
    texts = parts[::4]
    return ["".join(map(add, texts, (*map(str, chosen), ""))) for chosen in product(*runs)]


def _numbers(first: str, second: str | None, last: str) -> range:
    step = 1 if second is None else int(second) - int(first)
    return range(int(first), int(last) + 1, step) if step > 0 else range(0)


def _split(name: str) -> tuple[_Skeleton, tuple[int, ...]]:
    """The text between the numbers of a name, and the numbers."""
    parts = _NUMBER.split(name)
    if any(len(number) > 1 and number.startswith("0") for number in parts[1::2]):  # 007 is not a number
        return (name,), ()
    return tuple(parts[::2]), tuple(map(int, parts[1::2]))


def _fold_at(group: list[_Names], at: int) -> list[_Names]:
    """Fold names that differ only in the number at one position."""
    by_others: dict[tuple[Run, ...], list[_Names]] = {}
    for found in group:
        by_others.setdefault((*found.numbers[:at], *found.numbers[at + 1 :]), []).append(found)
    folded = []
    for alike in by_others.values():
        if len(alike) < LEAST_FOLDED:
            folded += alike
        else:
            folded += _runs(sorted(alike, key=lambda found: found.numbers[at]), at)
    return folded


def _runs(alike: Sequence[_Names], at: int) -> list[_Names]:
    """Runs of equal steps, and the names outside any run; `alike` ascends."""
    by_number: dict[int, _Names] = {}
    for found in alike:
        by_number.setdefault(found.numbers[at].first, found)
    step = _commonest_step(list(by_number))
    folded = [found for found in alike if by_number[found.numbers[at].first] is not found]  # names that appear twice
    for number, found in by_number.items():
        if number - step in by_number:
            continue
        run = [found]
        while (number := number + step) in by_number:
            run.append(by_number[number])
        folded += [_merged(run, at, step)] if len(run) >= LEAST_FOLDED else run
    return folded


def _commonest_step(numbers: Sequence[int]) -> int:
    """The most frequent step between numbers, the smallest one of several; the numbers ascend."""
    steps = Counter(
        other - number
        for position, number in enumerate(numbers)
        for other in numbers[position + 1 : position + 1 + _MOST_PER_LAYER]
    )
    return min(steps, key=lambda step: (-steps[step], step), default=1)


def _merged(names: Sequence[_Names], at: int, step: int) -> _Names:
    run = Run(names[0].numbers[at].first, names[-1].numbers[at].last, step)
    numbers = (*names[0].numbers[:at], run, *names[0].numbers[at + 1 :])
    return _Names(numbers, tuple(sorted(member for found in names for member in found.members)))


def _joined(skeleton: _Skeleton, found: _Names, names: Sequence[str]) -> Folded:
    if len(found.members) == 1:
        return Folded(names[found.members[0]], found.members)
    texts = [part for pair in zip(skeleton, map(str, found.numbers)) for part in pair]
    return Folded("".join([*texts, *skeleton[len(found.numbers) :]]), found.members)
