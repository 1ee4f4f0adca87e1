"""The ways in which experts use a mesh axis: to split the batch, the weights inside layers, or sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Final, NamedTuple

from pyshardy.searching.autopartition.moves import batch_class, batch_classes, put, put_on_class, weights
from pyshardy.searching.autopartition.space import Assignment, Space

_DEEP: Final = 4
"""A class that at least this many weights have is the width of the layers, even if no input has it."""


class Style(NamedTuple):
    """A way to split weights inside layers.

    Attributes:
        width: The class of the features between layers, which stays whole.
        is_strict: What happens to a weight whose dimension the axis does not divide, such as one with fewer heads than
            devices. It stays whole if this is true; else another dimension is split.
        is_last: Whether a weight that has a class twice is split along the last such dimension: columns, not rows.
        is_first_choice: Whether the width is the most likely class.
    """

    width: int | None
    is_strict: bool = True
    is_last: bool = False
    is_first_choice: bool = True

    def name(self, space: Space) -> str:
        """The differences from the simplest style, in parentheses; "" if there are none."""
        found = ["by columns"] if self.is_last else []
        if not self.is_strict:
            found.append("any dimension that divides")
        if not self.is_first_choice and self.width is not None:
            found.append(f"{class_name(space, self.width)} whole")
        return f" ({', '.join(found)})" if found else ""


def styles(space: Space) -> Iterator[Style]:
    """The styles of splitting weights, the simplest first."""
    has_twice = any(len({group for group, _ in one.places}) < len(one.places) for one in space.classes)
    first = width_class(space)
    widths = dict.fromkeys((first, _commonest(space, split_classes(space)), handed_class(space)))
    for is_strict, is_last, width in product((True, False), (False, True) if has_twice else (False,), widths):
        yield Style(width, is_strict, is_last, width == first)


def class_name(space: Space, number: int) -> str:
    """The name of a class: its dimension of the largest input."""
    group, dim = max(space.classes[number].places, key=lambda place: space.groups[place[0]].bytes)
    return f"dimension {dim} of {space.groups[group].name}"


def split_classes(space: Space) -> list[int]:
    """Classes of weights' dimensions that tensor or expert parallelism may split, the most important first."""
    batches = batch_classes(space)
    of_weights = set(weights(space))
    found = [
        number
        for number, one in enumerate(space.classes)
        if number not in batches
        and any(group in of_weights and len(space.groups[group].shape) > 1 for group, _ in one.places)
    ]
    return sorted(found, key=lambda number: (-_bytes(space, number), number))[:6]


def width_class(space: Space) -> int | None:
    """The class of the features between layers: the one that most weights have, or inputs if there are few layers."""
    common = _commonest(space, split_classes(space))
    if common is None or _count(space, common) >= _DEEP:
        return common
    return handed_class(space)


def handed_class(space: Space) -> int | None:
    """The class of the features that enter the layers: of the classes of batched inputs, the one of most weights."""
    found = [number for number in split_classes(space) if number in _of_batch(space)]
    return _commonest(space, found or split_classes(space))


def _commonest(space: Space, classes: Iterable[int]) -> int | None:
    return max(classes, key=lambda number: (_count(space, number), -number), default=None)


def _count(space: Space, number: int) -> int:
    """The number of groups of parameters that have a class."""
    of_weights = {group for group in weights(space) if space.groups[group].twin is None}
    return len({group for group, _ in space.classes[number].places if group in of_weights})


def _of_batch(space: Space) -> set[int]:
    """The classes of inputs that have the batch."""
    batch = batch_class(space)
    groups = set() if batch is None else {group for group, _ in space.classes[batch].places}
    return {number for number, one in enumerate(space.classes) if any(group in groups for group, _ in one.places)}


def on_all(space: Space, assignment: Assignment, axes: Iterable[str], number: int) -> Assignment:
    """Put several axes on a class."""
    for axis in axes:
        assignment = put_on_class(space, assignment, axis, number)
    return assignment


def megatron(space: Space, assignment: Assignment, axis: str, style: Style | None = None) -> Assignment:
    """Split every weight along a dimension inside its layer, such as heads, hidden, vocabulary or experts."""
    style = style or Style(width_class(space))
    kept = (style.width, *batch_classes(space))
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
    """Split the dimension after the batch, if no weight has it: the sequence."""
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
    """The bytes of all inputs that have a class."""
    return sum(
        space.groups[group].bytes * len(space.groups[group].members)
        for group in {group for group, _ in space.classes[number].places}
    )
