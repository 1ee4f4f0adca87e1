"""The search for constraints of intermediate values that make a step faster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final, NamedTuple

from pyshardy.core.axes import Dims
from pyshardy.costing.step_cost import StepCost
from pyshardy.searching.autopartition.objective import LEAST_CONSTRAINT_GAIN

_NO_LOSS: Final = 0.001
"""A constraint is removed again if the step takes at most this share longer without it."""
_FIRST_GAIN, _NEXT_GAIN = 40, 64
"""After this many decisions without a gain no more are tried, and after this many without a further one. The first gain
came after up to 25, further ones after up to 55 more."""


class ConstrainableValue(NamedTuple):
    """A value that can be constrained.

    Attributes:
        number: The position in the list of values.
        shape: Sizes of its dimensions.
        element: MLIR's text of the element type.
        bytes: The unsharded size of all values that it represents.
        dims: The axes that propagation gives it.
    """

    number: int
    shape: tuple[int, ...]
    element: str
    bytes: float
    dims: Dims


Constrained = Mapping[int, Dims]
"""The axes of constrained values, by their position in the list of values."""
ConstraintPrice = Callable[[Constrained], "StepCost | None"]
"""The estimate of a step with constraints; None if propagation refuses them."""


@dataclass(slots=True)
class ConstraintSearch:
    """A search for constraints. The shardings of inputs and outputs stay as they are.

    Attributes:
        axes: Names and sizes of the mesh axes.
        price: The exact estimate.
        score: The quantity to minimize, as for the shardings of inputs.
        until: The time at which it ends, as `time.monotonic` counts.
        most: The largest number of candidates.
        tries: The number of candidates so far.
        ideas: The axes that are tried first, by the number of the value.
        permits: Whether a constraint may have these axes.
        best: The best constraints so far.
        cost: The estimate with the best constraints.
    """

    axes: Sequence[tuple[str, int]]
    price: ConstraintPrice
    score: Callable[[StepCost], tuple[float, float]]
    until: float
    most: int
    ideas: Mapping[int, Sequence[Dims]] = field(default_factory=dict)
    permits: Callable[[Dims], bool] = lambda dims: True
    tries: int = 0
    best: dict[int, Dims] = field(default_factory=dict)
    cost: StepCost | None = None

    def run(self, sites: Sequence[ConstrainableValue]) -> None:
        """Constrain groups of similar values, then single values, and keep what gains; then remove what gains nothing.

        If there are constraints at first, those that gain nothing are removed at first, too.

        Args:
            sites: The values.
        """
        self.cost = self.evaluate(self.best) if self.cost is None else self.cost
        if self.best:
            self.prune()
        last = self.tries + _FIRST_GAIN
        for decision in _decisions(sites, dict(self.axes), self.ideas):
            if self.is_over() or self.tries >= last:
                break
            if not all(map(self.permits, decision.values())):
                continue
            changed = {**self.best, **decision}
            found = None if changed == self.best else self.evaluate(changed)
            if found is not None and self._is_better(found, LEAST_CONSTRAINT_GAIN):
                self.best, self.cost, last = changed, found, self.tries + _NEXT_GAIN
        self.prune()

    def prune(self) -> None:
        """Remove constraints that gain nothing: single ones, each at most once."""
        for number in [*self.best]:
            rest = {other: dims for other, dims in self.best.items() if other != number}
            found = self.evaluate(rest)
            if found is not None and self._is_better(found, -_NO_LOSS):
                self.best, self.cost = rest, found

    def evaluate(self, constrained: Constrained) -> StepCost | None:
        """The exact estimate, counted as a candidate."""
        self.tries += 1
        return self.price(constrained)

    def is_over(self) -> bool:
        """Whether time or candidates have run out."""
        return self.cost is None or self.tries >= self.most or time.monotonic() > self.until

    def _is_better(self, found: StepCost, gain: float) -> bool:
        return self.cost is not None and self.score(found)[0] < self.score(self.cost)[0] * (1 - gain)


def _decisions(
    sites: Sequence[ConstrainableValue], sizes: Mapping[str, int], ideas: Mapping[int, Sequence[Dims]]
) -> Iterator[dict[int, Dims]]:
    """The constraints to try: ideas; then all values of one shape and sharding together, the largest first; then each.

    Every decision for a group is also tried with all other values constrained to the shardings that they have.
    Otherwise a new axis may propagate to values where it does harm. An example is an axis of the sequence, in layers
    whose weights are split along it.
    """
    alike: dict[object, list[ConstrainableValue]] = {}
    for site in sites:
        alike.setdefault((site.shape, site.element, site.dims), []).append(site)
    groups = sorted(alike.values(), key=lambda group: -sum(site.bytes for site in group))
    held = {site.number: site.dims for site in sites if any(site.dims)}
    for group in groups:
        for dims in dict.fromkeys(dims for site in group for dims in ideas.get(site.number, ())):
            yield {site.number: dims for site in group if dims in ideas.get(site.number, ())}
    for decision in _in_turns(groups, sizes):
        yield decision
        yield {**held, **decision}
    yield from _in_turns([[site] for group in groups if len(group) > 1 for site in group], sizes)


def _in_turns(groups: Sequence[Sequence[ConstrainableValue]], sizes: Mapping[str, int]) -> Iterator[dict[int, Dims]]:
    """The first change of every group, then the second of every group, and so on."""
    waiting = [(group, changes(group[0].shape, group[0].dims, sizes)) for group in groups]
    while waiting:
        left = []
        for group, rest in waiting:
            dims = next(rest, None)
            if dims is not None:
                left.append((group, rest))
                yield {site.number: dims for site in group}
        waiting = left


def changes(shape: Sequence[int], dims: Dims, sizes: Mapping[str, int]) -> Iterator[Dims]:
    """The shardings to try for a value: one axis added, moved or removed; last its own sharding, as a constraint.

    Args:
        shape: Sizes of its dimensions.
        dims: The axes of its own sharding.
        sizes: The sizes of the mesh axes.

    >>> list(changes((4, 3), (("x",), ()), {"x": 2, "y": 2}))
    [(('x', 'y'), ()), ((), ()), (('x',), ())]
    """
    places = {axis: next((dim for dim, axes in enumerate(dims) if axis in axes), None) for axis in sizes}
    for axis in sorted(sizes, key=lambda axis: places[axis] is not None):
        rest = tuple(tuple(one for one in axes if one != axis) for axes in dims)
        for dim in range(len(shape)):
            new = tuple((*axes, axis) if place == dim else axes for place, axes in enumerate(rest))
            if dim != places[axis] and shape[dim] % prod(sizes[one] for one in new[dim]) == 0:
                yield new
        if places[axis] is not None:
            yield rest
    yield dims
