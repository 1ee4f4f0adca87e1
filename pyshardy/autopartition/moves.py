"""Actions of a search: what one step may change in an assignment of axes to inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pyshardy.autopartition.space import Assignment, Dims, Space, with_dims

_MOST_PLACES: Final = 3


def put(space: Space, assignment: Assignment, axis: str, places: Sequence[tuple[int, int]]) -> Assignment:
    """Put an axis on dimensions, behind what is there; a group that it does not fit stays as it is.

    Args:
        space: The decisions.
        assignment: What to change.
        axis: The mesh axis; in the groups of these places it is taken from where it was.
        places: Pairs of group and dimension; of several of one group, the first that fits counts.
    """
    changes: dict[int, Dims] = {}
    for group, dim in places:
        if group in changes or not space.is_free(group):
            continue
        rest = _without(assignment[group], axis)
        dims = tuple((*axes, axis) if place == dim else axes for place, axes in enumerate(rest))
        if space.fits(group, dims):
            changes[group] = dims
    return with_dims(assignment, changes)


def take(space: Space, assignment: Assignment, axis: str, groups: Sequence[int]) -> Assignment:
    """Take an axis from groups."""
    return with_dims(assignment, {group: _without(assignment[group], axis) for group in groups if space.is_free(group)})


def put_on_class(space: Space, assignment: Assignment, axis: str, number: int) -> Assignment:
    """Put an axis on a class of dimensions, and take it from all other inputs that have a dimension of the class."""
    return put(space, assignment, axis, space.classes[number].places)


def store(space: Space, assignment: Assignment, axis: str, groups: Sequence[int], on_top: bool = False) -> Assignment:
    """Let devices along an axis store parts of inputs: along the largest dimension that nothing else splits.

    Args:
        space: The decisions.
        assignment: What to change.
        axis: The mesh axis.
        groups: The groups; one that has the axis already, or has no dimension for it, stays as it is.
        on_top: Whether dimensions that are split already come first.
    """
    changes: dict[int, Dims] = {}
    for group in groups:
        dims = assignment[group]
        if not space.is_free(group) or any(axis in axes for axes in dims):
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
    """Let devices along axes store parts of inputs, all along one dimension: the largest that nothing else splits.

    Args:
        space: The decisions.
        assignment: What to change.
        axes: The mesh axes; those that a group has already, or that do not divide it, are left out.
        groups: The groups.
    """
    changes: dict[int, Dims] = {}
    for group in groups:
        dims = assignment[group]
        used = {axis for one in dims for axis in one}
        shape = space.groups[group].shape
        if not space.is_free(group) or not shape:
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
    """The groups that a step gives back, or that have no dimension of the batch: parameters and their state."""
    batch = batch_class(space)
    places = {group for group, _ in space.classes[batch].places} if batch is not None else set()
    return [number for number in range(len(space.groups)) if number not in places and space.groups[number].shape]


def states(space: Space) -> list[int]:
    """The groups of the optimizer's state."""
    return [number for number, group in enumerate(space.groups) if group.twin is not None]


def batch_class(space: Space) -> int | None:
    """The class of the batch: that which most values in between have as their first dimension.

    It is the first dimension of some input that the step does not give back, if there are such inputs.
    """
    groups, classes = space.groups, space.classes
    leading = [number for number, one in enumerate(classes) if any(dim == 0 for _, dim in one.places) and one.weight]
    data = [
        number
        for number in leading
        if any(dim == 0 and not groups[group].outputs for group, dim in classes[number].places)
    ]
    small = [number for number in data or leading if not _is_of_weights(space, number)]
    return max(small or leading, key=lambda number: (classes[number].weight, -number), default=None)


def _is_of_weights(space: Space, number: int) -> bool:
    """Whether inputs of the class are given back by the step, such as parameters are."""
    groups = {group for group, _ in space.classes[number].places}
    return all(space.groups[group].outputs and space.groups[group].is_donated for group in groups) or any(
        space.groups[group].twin is not None for group in groups
    )


def together(space: Space, group: int) -> list[list[int]]:
    """The sets of groups that a step may change at once: one alone, and parameters with their state."""
    root = space.groups[group].twin
    root = group if root is None else root
    family = [number for number, one in enumerate(space.groups) if number == root or one.twin == root]
    state = [number for number in family if number != root]
    if group != root:
        return [state] if group == state[0] else []
    return [[group], family] if state else [[group]]


def all_moves(space: Space, assignment: Assignment) -> Iterator[Assignment]:
    """The assignments one step away, the far-reaching steps first; some are equal to the one given."""
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
    """Two axes in each other's place."""
    names = [name for name, _ in space.axes]
    for first, one in enumerate(names):
        for other in names[first + 1 :]:
            swap = {one: other, other: one}
            changes = {
                group: tuple(tuple(swap.get(axis, axis) for axis in axes) for axes in dims)
                for group, dims in enumerate(assignment)
                if space.is_free(group)
            }
            yield with_dims(assignment, {group: dims for group, dims in changes.items() if space.fits(group, dims)})


def small_moves(space: Space, assignment: Assignment) -> Iterator[Assignment]:
    """Steps that concern one group of inputs, or parameters and their state."""
    for group in sorted(range(len(space.groups)), key=lambda one: -_size(space, one)):
        if not space.is_free(group):
            continue
        for groups in together(space, group):
            for axis, _ in space.axes:
                yield take(space, assignment, axis, groups)
                for dim in range(min(len(space.groups[group].shape), _MOST_PLACES + 1)):
                    yield put(space, assignment, axis, [(one, dim) for one in groups])


def _size(space: Space, group: int) -> int:
    return space.groups[group].bytes * len(space.groups[group].members)
