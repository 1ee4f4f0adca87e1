"""The search for constraints of intermediate values that make a step faster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final, NamedTuple

from pyshardy.autopartition.pricing import Quick
from pyshardy.autopartition.space import Dims

LEAST_GAIN: Final = 0.005
"""A constraint is there for a step that is so much faster; it costs its reader a line."""
_NO_LOSS: Final = 0.001
"""One without which a step takes no more than this longer is left out again."""


class Site(NamedTuple):
    """A value that can be constrained.

    Attributes:
        number: The position in the list of values.
        shape: Sizes of its dimensions.
        element: MLIR's text of the element type.
        bytes: The unsharded size of all values that it stands for.
        dims: The axes that propagation gives it.
    """

    number: int
    shape: tuple[int, ...]
    element: str
    bytes: float
    dims: Dims


Constrained = Mapping[int, Dims]
"""The axes of values by their position in the list."""
ConstraintPrice = Callable[[Constrained], "Quick | None"]
"""What a step costs with constraints; None if it cannot be propagated."""


@dataclass
class ConstraintSearch:
    """A search for constraints. The shardings of inputs and outputs stay as they are.

    Attributes:
        axes: Names and sizes of the mesh axes.
        price: The careful estimate.
        score: The quantity to minimize, as for the shardings of inputs.
        until: The time at which it ends, by `time.monotonic`.
        most: The largest number of candidates.
        tries: The number of candidates so far.
        best: The best constraints so far.
    """

    axes: Sequence[tuple[str, int]]
    price: ConstraintPrice
    score: Callable[[Quick], tuple[float, float]]
    until: float
    most: int
    tries: int = 0
    best: dict[int, Dims] = field(default_factory=dict)
    quick: Quick | None = None

    def run(self, sites: Sequence[Site]) -> None:
        """Constrain groups of like values, then single values, and keep each gain; then remove those without gain.

        Args:
            sites: The values.
        """
        self.quick = self.evaluate({}) if self.quick is None else self.quick
        for decision in _decisions(sites, dict(self.axes)):
            if self.is_over():
                break
            changed = {**self.best, **decision}
            found = None if changed == self.best else self.evaluate(changed)
            if found is not None and self._is_better(found, LEAST_GAIN):
                self.best, self.quick = changed, found
        self.prune()

    def prune(self) -> None:
        """Remove constraints that gain nothing."""
        for number in [*self.best]:
            rest = {other: dims for other, dims in self.best.items() if other != number}
            found = self.price(rest)
            if found is not None and self._is_better(found, -_NO_LOSS):
                self.best, self.quick = rest, found

    def evaluate(self, constrained: Constrained) -> Quick | None:
        """The careful estimate, counted as a candidate."""
        self.tries += 1
        return self.price(constrained)

    def is_over(self) -> bool:
        """Whether time or candidates have run out."""
        return self.quick is None or self.tries >= self.most or time.monotonic() > self.until

    def _is_better(self, found: Quick, gain: float) -> bool:
        return self.quick is not None and self.score(found)[0] < self.score(self.quick)[0] * (1 - gain)


def _decisions(sites: Sequence[Site], sizes: Mapping[str, int]) -> Iterator[dict[int, Dims]]:
    """What to try: first for values of one shape that are sharded alike together, the largest first; then for each.

    Together also with all others held as they are: else what changes could spread to where it is in the way, such as
    an axis of a sequence into the layers that split their weights along it.
    """
    alike: dict[object, list[Site]] = {}
    for site in sites:
        alike.setdefault((site.shape, site.element, site.dims), []).append(site)
    groups = sorted(alike.values(), key=lambda group: -sum(site.bytes for site in group))
    held = {site.number: site.dims for site in sites if any(site.dims)}
    for decision in _in_turns(groups, sizes):
        yield decision
        yield {**held, **decision}
    yield from _in_turns([[site] for group in groups if len(group) > 1 for site in group], sizes)


def _in_turns(groups: Sequence[Sequence[Site]], sizes: Mapping[str, int]) -> Iterator[dict[int, Dims]]:
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
    """Other shardings of a value: an axis more, an axis elsewhere, an axis less; and the one that it has, fixed.

    Args:
        shape: Sizes of its dimensions.
        dims: The axes that it has.
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
