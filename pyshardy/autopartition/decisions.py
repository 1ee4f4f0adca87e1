"""The decisions of an assignment, each with the assignment without it."""

from __future__ import annotations

from collections.abc import Iterator

from pyshardy.autopartition.moves import take
from pyshardy.autopartition.space import Assignment, Space

_MOST = 12


def decisions(space: Space, assignment: Assignment) -> Iterator[tuple[str, Assignment]]:
    """Every decision in words, with the assignment without it. A decision is one axis on one class of dimensions."""
    found: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for group, dims in enumerate(assignment):
        if not space.groups[group].is_free:
            continue
        for dim, axes in enumerate(dims):
            number = space.class_of.get((group, dim), -1 - group)
            for axis in axes:
                found.setdefault((axis, number), []).append((group, dim))
    order = sorted(found.items(), key=lambda item: -sum(space.groups[group].bytes for group, _ in item[1]))
    for (axis, _), places in order[:_MOST]:
        yield _words(space, axis, places), take(space, assignment, axis, [group for group, _ in places])


def _words(space: Space, axis: str, places: list[tuple[int, int]]) -> str:
    group, dim = places[0]
    more = len(places) - 1
    text = f"'{axis}' on dimension {dim} of {space.groups[group].name}"
    return text if not more else f"{text} and of {more} other {'group' if more == 1 else 'groups'} of inputs"
