"""What experts do, derived from the classes of dimensions of a program: the seeds of a search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from pyshardy.autopartition.moves import batch_class, put_on_class, states, store, weights
from pyshardy.autopartition.space import Assignment, Space


def tactics(space: Space) -> dict[str, Assignment]:
    """Assignments by the name of what they are, the plain ones first; those that are equal are there once."""
    found: dict[str, Assignment] = {}
    seen: set[Assignment] = set()
    for name, assignment in _all(space):
        if assignment not in seen:
            seen.add(assignment)
            found[name] = assignment
    return found


def _all(space: Space) -> Iterator[tuple[str, Assignment]]:
    batch = batch_class(space)
    names = [name for name, _ in space.axes]
    if batch is not None:
        yield from _data_parallel(space, batch, names)
    for axis in reversed(names):  # people give the last axis to tensors
        others = [name for name in names if name != axis]
        base = megatron(space, space.empty, axis)
        if batch is not None and others:
            name = f"Megatron over {axis}, data over {'+'.join(others)}"
            yield from _with_storage(space, name, _on_all(space, base, others, batch), others)
            yield f"{name}, sequence over {axis}", sequence(space, _on_all(space, base, others, batch), axis)
    if len(names) > 1:
        every = space.empty
        for axis in names:
            every = megatron(space, every, axis)
        yield f"Megatron over {'+'.join(names)}", every
    for axis in reversed(names):
        yield f"Megatron over {axis}", megatron(space, space.empty, axis)
    yield "as it is, nothing added", space.empty
    if batch is not None:
        for count in range(len(names) - 1, 0, -1):
            for axes in combinations(names, count):
                yield from _data_parallel(space, batch, axes)
    for number in split_classes(space):
        for axis in names:
            others = [name for name in names if name != axis]
            base = put_on_class(space, space.empty, axis, number)
            yield f"{_class_name(space, number)} over {axis}", base
            if batch is not None and others:
                name = f"{_class_name(space, number)} over {axis}, data over {'+'.join(others)}"
                yield from _with_storage(space, name, _on_all(space, base, others, batch), others)


def _data_parallel(space: Space, batch: int, axes: Sequence[str]) -> Iterator[tuple[str, Assignment]]:
    base = _on_all(space, space.empty, axes, batch)
    yield from _with_storage(space, f"data over {'+'.join(axes)}", base, axes)


def _with_storage(space: Space, name: str, base: Assignment, axes: Sequence[str]) -> Iterator[tuple[str, Assignment]]:
    """A tactic, and the same where state, or all weights, are stored in parts along the axes of data."""
    yield name, base
    for title, groups in (("ZeRO-1", states(space)), ("ZeRO-3", weights(space))):
        stored = base
        for place, axis in enumerate(axes):
            stored = store(space, stored, axis, groups, on_top=place > 0)
        yield f"{name}, {title}", stored


def _on_all(space: Space, assignment: Assignment, axes: Sequence[str], number: int) -> Assignment:
    for axis in axes:
        assignment = put_on_class(space, assignment, axis, number)
    return assignment


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
    """The class that most weights have: the width of what layers hand on."""
    of_weights = set(weights(space))
    return max(
        split_classes(space),
        key=lambda number: (len({group for group, _ in space.classes[number].places if group in of_weights}), -number),
        default=None,
    )


def megatron(space: Space, assignment: Assignment, axis: str) -> Assignment:
    """Split every weight along a dimension inside of its layer: heads, hidden, vocabulary, experts; not the width."""
    width, batch = width_class(space), batch_class(space)
    order = sorted(
        (number for number in range(len(space.classes)) if number not in (width, batch)),
        key=lambda number: (min(dim for _, dim in space.classes[number].places), number),
    )
    of_weights = set(weights(space))
    done: set[int] = set()
    for number in sorted(order, key=lambda number: (-_bytes(space, number), number)):
        places = [place for place in space.classes[number].places if place[0] in of_weights]
        if not places or any(group in done for group, _ in places):
            continue
        before = assignment
        assignment = put_on_class(space, assignment, axis, number)
        done.update(group for group, _ in places if assignment[group] != before[group])
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


def _class_name(space: Space, number: int) -> str:
    """A class by one of its dimensions."""
    group, dim = space.classes[number].places[0]
    return f"dimension {dim} of {space.groups[group].name}"


def _bytes(space: Space, number: int) -> int:
    return sum(
        space.groups[group].bytes * len(space.groups[group].members)
        for group in {group for group, _ in space.classes[number].places}
    )
