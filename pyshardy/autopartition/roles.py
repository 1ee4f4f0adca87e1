"""What people let a mesh axis do: split the batch, split weights inside of layers, split sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pyshardy.autopartition.moves import batch_class, put, put_on_class, weights
from pyshardy.autopartition.space import Assignment, Space


class Style(NamedTuple):
    """A way to split weights inside of layers.

    Attributes:
        width: The class that layers hand on, which stays whole.
        is_strict: Whether a weight stays whole if the dimension that belongs to it does not divide, as where there are
            fewer heads than devices; else it is split along another one.
        is_last: Whether of a weight that has a class twice the last dimension is split: columns, not rows.
    """

    width: int | None
    is_strict: bool = True
    is_last: bool = False

    @property
    def name(self) -> str:
        """What is special about it."""
        return (" along columns" if self.is_last else "") + ("" if self.is_strict else " along what divides")


def styles(space: Space) -> Iterator[Style]:
    """The ways to split weights, the plain ones first."""
    has_twice = any(len({group for group, _ in one.places}) < len(one.places) for one in space.classes)
    for is_strict in (True, False):
        for is_last in (True, False) if has_twice else (False,):
            for width in dict.fromkeys((width_class(space), handed_class(space))):
                yield Style(width, is_strict, is_last)


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
    """The class that most weights have: the width of what layers hand on; of several, that which inputs have too."""
    of_weights, handed = set(weights(space)), _of_batch(space)
    return max(
        split_classes(space),
        key=lambda number: (
            len({group for group, _ in space.classes[number].places if group in of_weights}),
            number in handed,
            -number,
        ),
        default=None,
    )


def handed_class(space: Space) -> int | None:
    """The class that inputs with the batch have, and most weights of those: the width of what goes into layers."""
    handed = _of_batch(space)
    of_weights = set(weights(space))
    found = [number for number in split_classes(space) if number in handed]
    return max(
        found,
        key=lambda number: (len({group for group, _ in space.classes[number].places if group in of_weights}), -number),
        default=width_class(space),
    )


def _of_batch(space: Space) -> set[int]:
    """The classes that are in inputs that have the batch."""
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
