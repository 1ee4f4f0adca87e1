"""The roles that experts give to a mesh axis: split the batch, weights inside layers, or sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Final, NamedTuple

from pyshardy.autopartition.moves import batch_class, put, put_on_class, weights
from pyshardy.autopartition.space import Assignment, Space

_DEEP: Final = 4
"""A class that so many weights have is the width of layers, even if no input has it."""


class Style(NamedTuple):
    """A way to split weights inside layers.

    Attributes:
        width: The class of the features between layers, which stays whole.
        is_strict: Whether a weight stays whole if the dimension that belongs to it does not divide, as where there are
            fewer heads than devices; else it is split along another one.
        is_last: Whether of a weight that has a class twice the last dimension is split: columns, not rows.
        is_first_choice: Whether the width is that which is most likely the one.
    """

    width: int | None
    is_strict: bool = True
    is_last: bool = False
    is_first_choice: bool = True

    def name(self, space: Space) -> str:
        """How it differs from the plain way."""
        found = " along columns" if self.is_last else ""
        if not self.is_strict:
            found += " along what divides"
        if self.is_first_choice or self.width is None:
            return found
        return f"{found} beside {class_name(space, self.width)}"


def styles(space: Space) -> Iterator[Style]:
    """The ways to split weights, the simplest first."""
    has_twice = any(len({group for group, _ in one.places}) < len(one.places) for one in space.classes)
    first = width_class(space)
    widths = dict.fromkeys((first, _commonest(space, split_classes(space)), handed_class(space)))
    for is_strict, is_last, width in product((True, False), (False, True) if has_twice else (False,), widths):
        yield Style(width, is_strict, is_last, width == first)


def class_name(space: Space, number: int) -> str:
    """The name of a class: one of its dimensions."""
    group, dim = space.classes[number].places[0]
    return f"dimension {dim} of {space.groups[group].name}"


def split_classes(space: Space) -> list[int]:
    """Classes of weights' dimensions that tensor or expert parallelism may split, the most important first."""
    batch = batch_class(space)
    of_weights = set(weights(space))
    found = [
        number
        for number, one in enumerate(space.classes)
        if number != batch
        and any(group in of_weights and len(space.groups[group].shape) > 1 for group, _ in one.places)
    ]
    return sorted(found, key=lambda number: (-_bytes(space, number), number))[:6]


def width_class(space: Space) -> int | None:
    """The class of the features between layers: that of most weights, or of the inputs if there are few layers."""
    common = _commonest(space, split_classes(space))
    if common is None or _count(space, common) >= _DEEP:
        return common
    return handed_class(space)


def handed_class(space: Space) -> int | None:
    """The class of the features that enter the layers: of those of inputs with the batch, the one of most weights."""
    found = [number for number in split_classes(space) if number in _of_batch(space)]
    return _commonest(space, found or split_classes(space))


def _commonest(space: Space, classes: Iterable[int]) -> int | None:
    return max(classes, key=lambda number: (_count(space, number), -number), default=None)


def _count(space: Space, number: int) -> int:
    """The number of parameters that have a class."""
    of_weights = {group for group in weights(space) if space.groups[group].twin is None}
    return len({group for group, _ in space.classes[number].places if group in of_weights})


def _of_batch(space: Space) -> set[int]:
    """The classes of inputs that have the batch."""
    batch = batch_class(space)
    groups = set() if batch is None else {group for group, _ in space.classes[batch].places}
    return {number for number, one in enumerate(space.classes) if any(group in groups for group, _ in one.places)}


def on_all(space: Space, assignment: Assignment, axes: Iterable[str], number: int) -> Assignment:
    """Axes on a class."""
    for axis in axes:
        assignment = put_on_class(space, assignment, axis, number)
    return assignment


def megatron(space: Space, assignment: Assignment, axis: str, style: Style | None = None) -> Assignment:
    """Split every weight along a dimension inside of its layer: heads, hidden, vocabulary, experts; not the width."""
    style = style or Style(width_class(space))
    kept = (style.width, batch_class(space))
    of_weights = set(weights(space))
    done: set[int] = set()
    for number in sorted(range(len(space.classes)), key=lambda number: (-_bytes(space, number), number)):
        places = space.classes[number].places
        of_class = {group for group, _ in places if group in of_weights}
        if number in kept or not of_class or not of_class.isdisjoint(done):
            continue
        before = assignment
        assignment = put(space, assignment, axis, places[::-1] if style.is_last else places)
        done.update(group for group in of_class if style.is_strict or assignment[group] != before[group])
    return assignment


def sequence(space: Space, assignment: Assignment, axis: str) -> Assignment:
    """Split the second dimension of the inputs that have the batch, if it is in no weight."""
    batch = batch_class(space)
    if batch is None:
        return assignment
    of_weights = set(weights(space))
    for group, dim in space.classes[batch].places:
        number = space.class_of.get((group, dim + 1))
        if number is not None and not any(other in of_weights for other, _ in space.classes[number].places):
            return put_on_class(space, assignment, axis, number)
    return assignment


def _bytes(space: Space, number: int) -> int:
    return sum(
        space.groups[group].bytes * len(space.groups[group].members)
        for group in {group for group, _ in space.classes[number].places}
    )
