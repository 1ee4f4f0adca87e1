"""The constraints that experts write beside the shardings of inputs, derived from these and the classes of dimensions.

Weights stored along an axis of the batch do not say where the batch is to stay: propagation may follow the weights.
So experts constrain activations: everywhere along the batch; inside of layers also along heads, hidden, vocabulary or
experts; between layers also along the sequence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Final, NamedTuple

from pyshardy.core.axes import Dims
from pyshardy.searching.autopartition.constraints import ConstrainableValue
from pyshardy.searching.autopartition.moves import batch_classes, weights
from pyshardy.searching.autopartition.roles import handed_class, split_classes, width_class
from pyshardy.searching.autopartition.space import Assignment, Space

ClassAxes = Mapping[int, tuple[str, ...]]
"""The axes of classes, by their numbers."""
_HALF: Final = 0.5
_MATRIX: Final = 2
_INSIDE: Final = " inside of layers"
_WEIGHTS_FIRST: Final = ", weights' axes first"


class ExpertConstraints(NamedTuple):
    """Constraints as experts write them.

    Attributes:
        name: What they keep where, in words.
        chosen: The axes by the number of the value.
    """

    name: str
    chosen: dict[int, Dims]


def expert_constraints(
    space: Space, assignment: Assignment, sites: Sequence[ConstrainableValue], classes: Mapping[int, tuple[int, ...]]
) -> list[ExpertConstraints]:
    """The constraints that fit shardings of inputs, each set once; those that propagation gives anyway are left out.

    They are in the order in which a search without much time should try them: inside of layers along the axes of
    weights, then all values, then some.

    Args:
        space: The decisions on inputs.
        assignment: The axes of inputs.
        sites: The values that can be constrained, with the axes that propagation gives them.
        classes: The classes of the dimensions of values, by their number; -1 for dimensions that no input has.
    """
    found: dict[tuple[tuple[int, Dims], ...], tuple[int, ExpertConstraints]] = {}
    between, own = _between_layers(space, sites, classes), {site.number: site.dims for site in sites}
    for name, dims_of in _ways(space, assignment):
        every = {site.number: dims_of(site.shape, classes.get(site.number, ())) for site in sites}
        every = {number: dims for number, dims in every.items() if any(dims)}
        inside = set(every) - between
        for part, numbers in (("", set(every)), (" between layers", between), (_INSIDE, inside)):
            chosen = {number: dims for number, dims in every.items() if number in numbers}
            changed = [(one, chosen[one]) for one, dims in own.items() if chosen.get(one, dims) != dims]
            if changed:
                turn = 0 if part == _INSIDE and name.endswith(_WEIGHTS_FIRST) else 1 if not part else 2
                found.setdefault(tuple(changed), (turn, ExpertConstraints(f"activations{part} {name}", chosen)))
    return [one for _, one in sorted(found.values(), key=lambda pair: pair[0])]


def expert_dims(
    space: Space, assignment: Assignment, sites: Sequence[ConstrainableValue], classes: Mapping[int, tuple[int, ...]]
) -> dict[int, list[Dims]]:
    """The axes that experts would give each value, other than those that it has anyway."""
    found = {}
    for site in sites:
        ways = [dims_of(site.shape, classes.get(site.number, ())) for _, dims_of in _ways(space, assignment)]
        found[site.number] = [dims for dims in dict.fromkeys(ways) if any(dims) and dims != site.dims]
    return found


def _between_layers(
    space: Space, sites: Sequence[ConstrainableValue], classes: Mapping[int, tuple[int, ...]]
) -> set[int]:
    """The values between layers: those that have the batch, and of the classes of weights only the width."""
    width, batches = {width_class(space), handed_class(space)}, set(batch_classes(space))
    of_weights = set(split_classes(space)) - width
    return {
        site.number
        for site in sites
        if batches.intersection(classes.get(site.number, ())) and of_weights.isdisjoint(classes[site.number])
    }


def _ways(space: Space, assignment: Assignment) -> Iterator[tuple[str, _Way]]:
    batches = set(batch_classes(space))
    data, inner = _axes_of_data(space, assignment), _axes_of_weights(space, assignment)
    of_batch = {number: axes for number, axes in data.items() if number in batches}
    orders: list[tuple[str, tuple[ClassAxes, ClassAxes], Sequence[frozenset[int]] | None]]
    orders = [("", (data, inner), None), (_WEIGHTS_FIRST, (inner, data), None)]
    if stacks := _stacks(space, inner):
        orders.append((", dispatched to experts", (inner, data), stacks))
    for title, order, only in orders:
        yield f"along the batch{title}", _Way(space, order, only=only)
        free = [axis for axis, _ in space.axes if not any(axis in axes for axes in of_batch.values())]
        if free:
            name = f"along the batch, sequences over {'+'.join(free)}{title}"
            yield name, _Way(space, order, tuple(free), frozenset(batches), only)


def _stacks(space: Space, inner: ClassAxes) -> list[frozenset[int]]:
    """The classes of every stack of matrices, such as those of experts, each of which has tokens of its own.

    Their first class has axes, and no stack has it elsewhere, as it would have heads.
    """
    found = []
    for group in weights(space):
        classes = [space.class_of.get((group, dim), -1) for dim in range(len(space.groups[group].shape))]
        if len(classes) > _MATRIX:
            found.append(classes)
    elsewhere = {number for _, *rest in found for number in rest}
    return list(dict.fromkeys(frozenset(one) for one in found if one[0] in inner and one[0] not in elsewhere))


class _Way:
    """Gives values their axes: those of the first classes first, then free ones to the sequence.

    Args:
        space: The decisions.
        order: The axes of classes; earlier ones come first.
        free: The axes for the dimension after the batch, if no other dimension has them.
        batches: The classes of the batch.
        only: The classes of stacks of weights. The order is turned round for values that do not have two classes of
            one of these, such as the weights of tokens for experts, which stay with the tokens.
    """

    def __init__(
        self,
        space: Space,
        order: Sequence[ClassAxes],
        free: tuple[str, ...] = (),
        batches: frozenset[int] = frozenset(),
        only: Sequence[frozenset[int]] | None = None,
    ) -> None:
        self.space, self.order, self.free, self.batches, self.only = space, order, free, batches, only
        self._weights = set(weights(space))

    def __call__(self, shape: Sequence[int], classes: Sequence[int]) -> Dims:
        """The axes of a value.

        Args:
            shape: Sizes of its dimensions.
            classes: Their classes; none if they are unknown.
        """
        found: list[tuple[str, ...]] = [()] * len(shape)
        is_inside = self.only is None or any(len(one.intersection(classes)) > 1 for one in self.only)
        for axes_of in (self.order if is_inside else self.order[::-1]) if classes else ():
            for dim, number in enumerate(classes):
                self._put(found, shape, dim, axes_of.get(number, ()))
        after = self._sequence(classes)
        if after is not None:
            self._put(found, shape, after, self.free)
        return tuple(found)

    def _put(self, found: list[tuple[str, ...]], shape: Sequence[int], dim: int, axes: Sequence[str]) -> None:
        for axis in axes:
            longer = (*found[dim], axis)
            is_used = any(axis in one for one in found)
            if not is_used and shape[dim] % prod(self.space.sizes[one] for one in longer) == 0:
                found[dim] = longer

    def _sequence(self, classes: Sequence[int]) -> int | None:
        """The dimension after the batch, if no weight has it and another one follows."""
        for dim, number in enumerate(classes[:-2]):
            if number in self.batches and not self._is_of_weights(classes[dim + 1]):
                return dim + 1
        return None

    def _is_of_weights(self, number: int) -> bool:
        places = self.space.classes[number].places if number >= 0 else ()
        return any(group in self._weights for group, _ in places)


def _axes_of_data(space: Space, assignment: Assignment) -> dict[int, tuple[str, ...]]:
    """The axes that inputs other than weights have, by class."""
    of_weights = set(weights(space))
    found: dict[int, tuple[str, ...]] = {}
    for number, one in enumerate(space.classes):
        for group, dim in one.places:
            axes = _dims(space, assignment, group)[dim]
            if group not in of_weights and len(axes) > len(found.get(number, ())):
                found[number] = axes
    return found


def _axes_of_weights(space: Space, assignment: Assignment) -> dict[int, tuple[str, ...]]:
    """The axes that most parameters with a class have there; the width, which stays whole between layers, has none."""
    parameters = {group for group in weights(space) if space.groups[group].twin is None}
    kept = {width_class(space), handed_class(space), *batch_classes(space)}
    found = {}
    for number, one in enumerate(space.classes):
        places = [(group, dim) for group, dim in one.places if group in parameters]
        whole = sum(_bytes(space, group) for group, _ in places)
        if number in kept or not whole:
            continue
        have = {
            axis: sum(_bytes(space, group) for group, dim in places if axis in _dims(space, assignment, group)[dim])
            for axis, _ in space.axes
        }
        found[number] = tuple(axis for axis, bytes in have.items() if bytes > _HALF * whole)
    return {number: axes for number, axes in found.items() if axes}


def _dims(space: Space, assignment: Assignment, group: int) -> Dims:
    """The axes of a group, also of one whose sharding is given."""
    fixed = space.groups[group].fixed
    if fixed is None:
        return assignment[group]
    return tuple(
        tuple(axis.name for axis in dim.axes if axis.is_full and axis.name in space.sizes) for dim in fixed.dims
    )


def _bytes(space: Space, group: int) -> int:
    return space.groups[group].bytes * len(space.groups[group].members)
