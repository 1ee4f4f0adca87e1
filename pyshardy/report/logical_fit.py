"""Finds logical axis rules that give arrays their shardings: pairs of a logical axis and mesh axes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from pyshardy.core.axes import Dims
from pyshardy.report.rules import without_end

_MOST_CHECKS = 20_000
"""After so many checks of a choice of arrays, the best choice so far is the answer."""
LogicalNames = tuple[str | None, ...]
LogicalRule = tuple[str, tuple[str, ...]]
"""A logical axis, and the mesh axes that it is split along, major to minor; none if it stays whole."""


@dataclass(frozen=True, slots=True)
class LogicalArrays:
    """Inputs with the same logical axes that are to be sharded alike.

    Attributes:
        inputs: Their names; `[*]` stands for every layer.
        names: The logical axis of each dimension; None for a dimension without one.
        axes: The mesh axes that each dimension is to have, major to minor, without those at the end that have none.
        count: The number of arrays.
        bytes: Their bytes together, on all devices.
    """

    inputs: tuple[str, ...]
    names: LogicalNames
    axes: Dims
    count: int
    bytes: int


class Fit(NamedTuple):
    """The rules that fit most bytes.

    Attributes:
        rules: The rules. Every logical axis has one at least.
        causes: By the position of arrays that no rules can give their shardings together with the others: those of the
            others that are in the way; none for arrays that no rules fit, whatever the others have.
        is_most: Whether it is sure that no rules fit more.
    """

    rules: tuple[LogicalRule, ...]
    causes: dict[int, tuple[int, ...]]
    is_most: bool


def grouped(arrays: Iterable[LogicalArrays]) -> list[LogicalArrays]:
    """The arrays, those together that have the same logical axes and the same sharding; the most bytes first."""
    found: dict[tuple[LogicalNames, Dims], list[LogicalArrays]] = {}
    for one in arrays:
        found.setdefault((one.names, without_end(one.axes)), []).append(one)
    joined = [
        LogicalArrays(
            tuple(name for one in group for name in one.inputs),
            names,
            axes,
            sum(one.count for one in group),
            sum(one.bytes for one in group),
        )
        for (names, axes), group in found.items()
    ]
    return sorted(joined, key=lambda one: -one.bytes)


def by_rules(names: LogicalNames, rules: Iterable[LogicalRule]) -> Dims:
    """The axes that rules give an array: rules go in order, and a mesh axis is used once; as in flax's linen.

    >>> rules = [("experts", ("model",)), ("embed", ("data",)), ("mlp", ("model",))]
    >>> by_rules(("embed", "mlp"), rules), by_rules(("experts", "embed", "mlp"), rules)
    ((('data',), ('model',)), (('model',), ('data',)))
    """
    found: dict[str | None, tuple[str, ...]] = {}
    used: set[str] = set()
    for name, axes in rules:
        if name in names and name not in found and used.isdisjoint(axes):
            found[name] = axes
            used.update(axes)
    return without_end(tuple(found.get(name, ()) for name in names))


def by_table(names: LogicalNames, rules: Iterable[LogicalRule]) -> Dims:
    """The axes that a table with one entry for every name gives an array; as in flax's nnx and in haliax.

    >>> by_table(("embed", None, "mlp"), [("mlp", ("model",)), ("embed", ())])
    ((), (), ('model',))
    """
    found = dict(rules)
    return without_end(tuple(() if name is None else found.get(name, ()) for name in names))


def fit(arrays: Sequence[LogicalArrays], once: bool, first: Collection[str] = ()) -> Fit:
    """The rules that give most bytes their shardings.

    Whether rules for some arrays exist is decided exactly: a rule that would give an array a wrong axis has to come
    after one that makes it idle there, and such an order is found if there is one. Which arrays to leave out is tried
    from the lightest on, until no choice can be better.

    Args:
        arrays: What `grouped` returns.
        once: Whether a logical axis has one rule, as `by_table` takes it; otherwise `by_rules` reads them.
        first: Logical axes whose rules come first where that makes no difference to the arrays.
    """
    orders = _Orders(arrays, once, first)
    weights = [max(1, one.bytes) for one in arrays]
    kept, is_most = _heaviest(weights, orders)
    rules = orders.order(kept) or []
    left = [number for number in range(len(arrays)) if number not in kept]
    for number in left:
        for rule in _needs(arrays[number]):
            more = [*rules, rule] if once else orders.order(kept, [*rules, rule])
            if more and rule not in rules and _decides(rule, arrays[number], more, once):
                rules = more
    if once:
        rules = _without_clashes(rules, arrays, kept)
        is_most = is_most and all(rule in rules for number in kept for rule in _needs(arrays[number]))
    named = {name for name, _ in rules}
    whole = dict.fromkeys(name for one in arrays for name in one.names if name is not None and name not in named)
    causes = {
        number: tuple(sorted(set(_core([number, *sorted(kept)], orders)) - {number}))
        if orders.order({number}) is not None
        else ()
        for number in left
    }
    return Fit((*rules, *((name, ()) for name in whole)), causes, is_most)


def _decides(rule: LogicalRule, one: LogicalArrays, rules: Sequence[LogicalRule], once: bool) -> bool:
    """Whether one of several rules is the one that an array has for its logical axis."""
    name, axes = rule
    if once:
        return all(rule == other for other in rules if other[0] == name)
    given = by_rules(one.names, rules)
    at = one.names.index(name)
    return at < len(given) and given[at] == axes


def _needs(one: LogicalArrays) -> list[LogicalRule]:
    return [(name, axes) for name, axes in zip(one.names, one.axes) if name is not None and axes]


class _Orders:
    """Orders of rules that give chosen arrays their shardings.

    A rule is a bit, and so are sets of rules. `_waits` has for every array the rules that would give it something else,
    each with the rules of which one has to come before it.
    """

    def __init__(self, arrays: Sequence[LogicalArrays], once: bool, first: Collection[str]) -> None:
        rules = dict.fromkeys(rule for one in arrays for rule in _needs(one))
        self.rules = sorted(rules, key=lambda rule: rule[0] not in first)
        self._numbers = {rule: number for number, rule in enumerate(self.rules)}
        self._needed = [self._set(_needs(one)) for one in arrays]
        self._waits = [list(self._waits_of(one, once)) for one in arrays]
        self._never = {
            number
            for number, one in enumerate(arrays)
            if any(name is None and axes for name, axes in zip(one.names, one.axes))
        }
        self.checks = 0

    def _waits_of(self, one: LogicalArrays, once: bool) -> Iterable[tuple[int, int]]:
        wanted = dict(zip(one.names, (*one.axes, *((),) * len(one.names))))
        for number, (name, axes) in enumerate(self.rules):
            if name in wanted and wanted[name] != axes:
                idle = (rule for rule in _needs(one) if rule[0] == name or not set(axes).isdisjoint(rule[1]))
                yield number, 0 if once else self._set(idle)

    def _set(self, rules: Iterable[LogicalRule]) -> int:
        found = 0
        for rule in rules:
            found |= 1 << self._numbers[rule]
        return found

    def order(self, chosen: Set[int], rules: Iterable[LogicalRule] = ()) -> list[LogicalRule] | None:
        """The rules that the chosen arrays need, and others, in an order that is right for these; None if none is.

        Args:
            chosen: Positions of arrays.
            rules: Other rules.
        """
        self.checks += 1
        if chosen & self._never:
            return None
        needed = self._set(rules)
        for number in chosen:
            needed |= self._needed[number]
        waits: dict[int, list[int]] = {number: [] for number in range(len(self.rules)) if needed >> number & 1}
        for one in chosen:
            for number, idle in self._waits[one]:
                if number in waits:
                    waits[number].append(idle)
        found, placed = [], 0
        while waits:
            ready = next((one for one, idle in waits.items() if all(placed & mask for mask in idle)), None)
            if ready is None:
                return None
            found.append(self.rules[ready])
            placed |= 1 << ready
            del waits[ready]
        return found


def _heaviest(weights: Sequence[int], orders: _Orders) -> tuple[frozenset[int], bool]:
    """The arrays to keep so that there are rules for them and the others weigh least, and whether that is sure."""
    best, least = frozenset[int](), sum(weights) + 1
    ahead, seen = [(0, frozenset(range(len(weights))))], set[frozenset[int]]()
    while ahead:
        lost, chosen = ahead.pop()
        if lost >= least or chosen in seen:
            continue
        if orders.checks > _MOST_CHECKS and least <= sum(weights):
            return best, False
        seen.add(chosen)
        core = _core(sorted(chosen), orders)
        if not core:
            best, least = chosen, lost
        ahead += [(lost + weights[one], chosen - {one}) for one in sorted(core, key=lambda one: (-weights[one], one))]
    return best, True


def _core(numbers: Sequence[int], orders: _Orders) -> list[int]:
    """The fewest of some arrays for which there are no rules: without any of these there are; none if there are rules.

    Those that stand last are left out first.
    """
    if orders.order(set(numbers)) is not None:
        return []
    found = list(numbers)
    for one in reversed(numbers):
        fewer = [other for other in found if other != one]
        if orders.order(set(fewer)) is None:
            found = fewer
    return found


def _without_clashes(
    rules: Sequence[LogicalRule], arrays: Sequence[LogicalArrays], kept: Set[int]
) -> list[LogicalRule]:
    """The rules of a table without those by which an array would have a mesh axis twice, which JAX refuses.

    Of two such rules the one goes that shards fewer bytes as they are to be.
    """
    found = list(rules)

    def bytes_of(rule: LogicalRule) -> int:
        return sum(arrays[number].bytes for number in kept if rule in _needs(arrays[number]))

    for one in arrays:
        while clashing := _clashing([rule for rule in found if rule[0] in one.names]):
            found.remove(min(clashing, key=bytes_of))
    return found


def _clashing(rules: Sequence[LogicalRule]) -> list[LogicalRule]:
    return [rule for rule in rules if any(rule != other and not set(rule[1]).isdisjoint(other[1]) for other in rules)]
