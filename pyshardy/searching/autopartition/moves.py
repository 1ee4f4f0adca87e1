"""The moves of a search: changes of an assignment of axes to inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pyshardy.core.axes import Dims
from pyshardy.searching.autopartition.space import Assignment, Space, with_dims

_MOST_PLACES: Final = 3
_SHARE: Final = 0.25
"""A first dimension of the data is the batch only if enough values have it: this share of those with another
dimension."""


def put(space: Space, assignment: Assignment, axis: str, places: Sequence[tuple[int, int]]) -> Assignment:
    """Put an axis on dimensions, behind the axes that they have. A group that the axis does not fit stays as it is.

    Args:
        space: The decisions.
        assignment: The assignment to change.
        axis: The mesh axis. It is removed from other dimensions of these groups.
        places: Pairs of group and dimension. In each group the first dimension that the axis fits gets it.
    """
    changes: dict[int, Dims] = {}
    for group, dim in places:
        if group in changes or not space.groups[group].is_free:
            continue
        rest = _without(assignment[group], axis)
        dims = tuple((*axes, axis) if place == dim else axes for place, axes in enumerate(rest))
        if space.fits(group, dims):
            changes[group] = dims
    return with_dims(assignment, changes)


def take(space: Space, assignment: Assignment, axis: str, groups: Sequence[int]) -> Assignment:
    """Remove an axis from groups."""
    return with_dims(
        assignment, {group: _without(assignment[group], axis) for group in groups if space.groups[group].is_free}
    )


def put_on_class(space: Space, assignment: Assignment, axis: str, number: int) -> Assignment:
    """Put an axis on a class of dimensions, and remove it from other dimensions of the same groups."""
    return put(space, assignment, axis, space.classes[number].places)


def store(space: Space, assignment: Assignment, axis: str, groups: Sequence[int], on_top: bool = False) -> Assignment:
    """Split inputs along an axis, each in its largest dimension that is not split yet, as ZeRO does.

    Args:
        space: The decisions.
        assignment: The assignment to change.
        axis: The mesh axis.
        groups: The groups. One that has the axis already, or no dimension for it, stays as it is.
        on_top: Whether dimensions that are split already come first.
    """
    changes: dict[int, Dims] = {}
    for group in groups:
        dims = assignment[group]
        if not space.groups[group].is_free or any(axis in axes for axes in dims):
            continue
        shape = space.groups[group].shape
        order = sorted(range(len(dims)), key=lambda dim: (bool(dims[dim]) is not on_top, -shape[dim], dim))
        for dim in order:
            new = tuple((*axes, axis) if place == dim else axes for place, axes in enumerate(dims))
            if space.fits(group, new):
                changes[group] = new
                break
    return with_dims(assignment, changes)


def store_all(space: Space, assignment: Assignment, axes: Sequence[str], groups: Sequence[int]) -> Assignment:
    """Split inputs along several axes, each in its largest dimension that is not split yet, as ZeRO does.

    Args:
        space: The decisions.
        assignment: The assignment to change.
        axes: The mesh axes. Those that a group has already, or that do not divide it, are left out.
        groups: The groups.
    """
    changes: dict[int, Dims] = {}
    for group in groups:
        dims = assignment[group]
        used = {axis for one in dims for axis in one}
        shape = space.groups[group].shape
        if not space.groups[group].is_free or not shape:
            continue
        whole = [dim for dim in range(len(dims)) if not dims[dim]] or list(range(len(dims)))
        for dim in sorted(whole, key=lambda dim: (-shape[dim], dim)):
            new = dims
            for axis in axes:
                longer = tuple((*one, axis) if place == dim else one for place, one in enumerate(new))
                if axis not in used and space.fits(group, longer):
                    new = longer
            if new != dims:
                changes[group] = new
                break
    return with_dims(assignment, changes)


def _without(dims: Dims, axis: str) -> Dims:
    return tuple(tuple(one for one in axes if one != axis) for axes in dims)


def weights(space: Space) -> list[int]:
    """The groups that a step returns, or that have no dimension of the batch: parameters and their state."""
    places = {group for batch in batch_classes(space) for group, _ in space.classes[batch].places}
    return [number for number in range(len(space.groups)) if number not in places and space.groups[number].shape]


def without_axes_of_small(space: Space, assignment: Assignment) -> Assignment:
    """Leave small parameters whole, and their state."""
    small = [number for number in weights(space) if number in space.small and space.groups[number].is_free]
    return with_dims(assignment, {number: space.empty[number] for number in small})


def states(space: Space) -> list[int]:
    """The groups of the optimizer state."""
    return [number for number, group in enumerate(space.groups) if group.twin is not None]


def batch_class(space: Space) -> int | None:
    """The class of the batch: the one that most intermediate values have as their first dimension.

    If some inputs are not returned by the step, such as tokens, it is the first dimension of one of them. A loop that
    takes micro-batches one by one hides this dimension from most values. Then it is the dimension of these inputs that
    most values have.
    """
    groups, classes = space.groups, space.classes
    leading = [number for number, one in enumerate(classes) if any(dim == 0 for _, dim in one.places) and one.weight]
    data = [
        number
        for number in leading
        if any(dim == 0 and not groups[group].outputs for group, dim in classes[number].places)
    ]
    inner = [number for number in range(len(classes)) if _is_of_data_alone(space, number)]
    least = _SHARE * max((_elements(space, number) for number in inner), default=0.0)
    if inner and all(_elements(space, number) < least for number in data):
        return max(inner, key=lambda number: (_elements(space, number), -number))
    small = [number for number in data or leading if not _is_of_weights(space, number)]
    return max(small or leading, key=lambda number: (classes[number].weight, -number), default=None)


def batch_classes(space: Space) -> list[int]:
    """The class of the batch, and others of its size that lead inputs without it.

    So a loss that compares every picture with every text has two batches.
    """
    first = batch_class(space)
    if first is None:
        return []
    places = space.classes[first].places
    groups, size = {group for group, _ in places}, _size_of(space, first)
    least = _SHARE * _SHARE * space.classes[first].weight
    others = [
        number
        for number, one in enumerate(space.classes)
        if one.weight > least
        and _size_of(space, number) == size
        and all(dim == 0 and group not in groups and not space.groups[group].outputs for group, dim in one.places)
    ]
    return [first, *others]


def _size_of(space: Space, number: int) -> int:
    group, dim = space.classes[number].places[0]
    return space.groups[group].shape[dim]


def _elements(space: Space, number: int) -> float:
    """Elements of the intermediate values that have a class."""
    return space.classes[number].weight + space.classes[number].others


def _is_of_data_alone(space: Space, number: int) -> bool:
    """Whether no input that the step returns has a class."""
    return all(not space.groups[group].outputs for group, _ in space.classes[number].places)


def _is_of_weights(space: Space, number: int) -> bool:
    """Whether a class is one of parameters: all its inputs are returned and donated, or some are optimizer state."""
    groups = {group for group, _ in space.classes[number].places}
    return all(space.groups[group].outputs and space.groups[group].is_donated for group in groups) or any(
        space.groups[group].twin is not None for group in groups
    )


def together(space: Space, group: int) -> list[list[int]]:
    """The sets of groups that one move changes: a group alone, and parameters with their optimizer state."""
    root = space.groups[group].twin
    root = group if root is None else root
    family = [number for number, one in enumerate(space.groups) if number == root or one.twin == root]
    state = [number for number in family if number != root]
    if group != root:
        return [state] if group == state[0] else []
    return [[group], family] if state else [[group]]


def all_moves(space: Space, assignment: Assignment) -> Iterator[Assignment]:
    """The neighbours of an assignment, those that change most first; some equal the assignment itself."""
    every = range(len(space.groups))
    for axis, _ in space.axes:
        for number in range(len(space.classes)):
            yield put_on_class(space, assignment, axis, number)
            yield put_on_class(space, take(space, assignment, axis, every), axis, number)
            yield put(space, assignment, axis, space.classes[number].places[::-1])
            yield take(space, assignment, axis, [group for group, _ in space.classes[number].places])
        for groups in (weights(space), states(space)):
            yield store(space, assignment, axis, groups)
            yield store(space, assignment, axis, groups, on_top=True)
            yield take(space, assignment, axis, groups)
        yield take(space, assignment, axis, every)
    yield from _swaps(space, assignment)
    yield from small_moves(space, assignment)


def _swaps(space: Space, assignment: Assignment) -> Iterator[Assignment]:
    """The assignments with two axes exchanged."""
    names = [name for name, _ in space.axes]
    for first, one in enumerate(names):
        for other in names[first + 1 :]:
            swap = {one: other, other: one}
            changes = {
                group: tuple(tuple(swap.get(axis, axis) for axis in axes) for axes in dims)
                for group, dims in enumerate(assignment)
                if space.groups[group].is_free
            }
            yield with_dims(assignment, {group: dims for group, dims in changes.items() if space.fits(group, dims)})


def small_moves(space: Space, assignment: Assignment) -> Iterator[Assignment]:
    """Moves of one group of inputs, or of parameters with their optimizer state."""
    for group in sorted(range(len(space.groups)), key=lambda one: -space.bytes_of(one)):
        if not space.groups[group].is_free:
            continue
        for groups in together(space, group):
            for axis, _ in space.axes:
                yield take(space, assignment, axis, groups)
                for dim in range(min(len(space.groups[group].shape), _MOST_PLACES + 1)):
                    yield put(space, assignment, axis, [(one, dim) for one in groups])
            if len(space.axes) > 1:
                for dim in range(min(len(space.groups[group].shape), _MOST_PLACES + 1)):
                    yield put_all(space, assignment, groups, dim)


def put_all(space: Space, assignment: Assignment, groups: Sequence[int], dim: int) -> Assignment:
    """Put all axes on one dimension of groups."""
    for axis, _ in space.axes:
        assignment = put(space, assignment, axis, [(group, dim) for group in groups])
    return assignment
