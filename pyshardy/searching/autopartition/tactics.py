"""The tactics of experts for a program, derived from its classes of dimensions: the first candidates of a search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations, permutations, product
from typing import Final

from pyshardy.searching.autopartition.moves import batch_classes, put_all, put_on_class, states, store_all, weights
from pyshardy.searching.autopartition.roles import Style, class_name, megatron, on_all, sequence, split_classes, styles
from pyshardy.searching.autopartition.space import Assignment, Space
from pyshardy.searching.autopartition.symmetry import Symmetry

_MOST_INPUTS: Final = 4
_MOST_EARLY: Final = 2
"""The number of classes that are put on axes alone before less common tactics."""
_STORED: Final = ", ZeRO-"
_NOTHING: Final = "no new shardings"
NamedAssignments = Iterator[tuple[str, Assignment]]


def tactics(space: Space) -> dict[str, Assignment]:
    """Assignments by the name of the tactic, the simple ones first; one of those that differ only by exchanged axes."""
    found: dict[str, Assignment] = {}
    seen: set[Assignment] = set()
    symmetry = Symmetry(space)
    for name, assignment in _Tactics(space).all():
        key = symmetry.key(assignment)
        if key not in seen:
            seen.add(key)
            found[_NOTHING if assignment == space.empty else name] = assignment
    return found


def without_storing(name: str) -> str:
    """The name of a tactic without that of ZeRO, if there is one in it.

    >>> without_storing("data over data+model, ZeRO-3 along model")
    'data over data+model'
    """
    return name.partition(_STORED)[0]


class _Tactics:
    def __init__(self, space: Space) -> None:
        self.space, self.batches = space, batch_classes(space)
        self.names = [name for name, _ in space.axes]
        self.styles = list(styles(space))
        self.titles = ((f"{_STORED}1", states(space)), (f"{_STORED}3", weights(space)))

    def all(self) -> NamedAssignments:
        """All tactics, the usual ones first."""
        plain, others = self.styles[:1], self.styles[1:]
        yield from self._data_parallel(self.names)
        yield from self._megatron_and_data(plain)
        yield from self._megatron_on_all(self.styles)
        yield from self._sequences()
        yield _NOTHING, self.space.empty
        yield from self._inputs()
        yield from self._on_whole_mesh(split_classes(self.space)[:_MOST_EARLY])
        yield from self._megatron_alone(plain)
        yield from self._classes(split_classes(self.space)[:_MOST_EARLY])
        yield from self._megatron_and_data(others)
        yield from self._megatron_alone(others)
        for count in range(len(self.names) - 1, 0, -1):
            for axes in combinations(self.names, count):
                yield from self._data_parallel(axes)
        yield from self._classes(split_classes(self.space)[_MOST_EARLY:])
        yield from self._on_whole_mesh(split_classes(self.space)[_MOST_EARLY:])
        yield from self._combinations_of_three()

    def _data(self, base: Assignment, axes: Sequence[str]) -> Assignment:
        for batch in self.batches:
            base = on_all(self.space, base, axes, batch)
        return base

    def _data_parallel(self, axes: Sequence[str]) -> NamedAssignments:
        if self.batches:
            name = f"data over {_list(axes)}"
            base = self._data(self.space.empty, axes)
            yield from self._stored(name, base, axes)
            for axis in reversed(axes if len(axes) > 1 else ()):
                yield from self._stored(name, base, [axis], f" along {axis}")

    def _inputs(self) -> NamedAssignments:
        """One or two inputs along their first dimensions, inputs other than weights first: edges, nodes, images."""
        space, of_weights = self.space, set(weights(self.space))
        data = [
            group
            for group, one in enumerate(space.groups)
            if one.shape and not one.outputs and space.groups[group].is_free
        ]
        data = sorted(data, key=lambda group: (group in of_weights, group))[:_MOST_INPUTS]
        for count in (1, 2):
            for groups in combinations(data, count):
                names = " and ".join(space.groups[group].name for group in groups)
                yield f"{names} over {_list(self.names)}", put_all(space, space.empty, groups, 0)

    def _each(self) -> Iterator[tuple[str, list[str]]]:
        """Every axis with the list of the others. The last comes first: it is usually that of tensor parallelism."""
        for axis in reversed(self.names):
            yield axis, [name for name in self.names if name != axis]

    def _megatron_and_data(self, chosen: Sequence[Style]) -> NamedAssignments:
        space = self.space
        for style, (axis, others) in product(chosen, self._each()):
            if not self.batches or not others:
                continue
            name = f"Megatron{style.name(self.space)} over {axis}, data over {_list(others)}"
            both = self._data(megatron(space, space.empty, axis, style), others)
            yield from self._stored(name, both, others)
            yield from self._stored(f"{name}, sequence over {axis}", sequence(space, both, axis), others)

    def _megatron_on_all(self, chosen: Sequence[Style]) -> NamedAssignments:
        for style in chosen:
            every = self.space.empty
            for axis in self.names:
                every = megatron(self.space, every, axis, style)
            yield f"Megatron{style.name(self.space)} over {_list(self.names)}", every

    def _megatron_alone(self, chosen: Sequence[Style]) -> NamedAssignments:
        for style, (axis, _) in product(chosen, self._each()):
            yield f"Megatron{style.name(self.space)} over {axis}", megatron(self.space, self.space.empty, axis, style)

    def _sequences(self) -> NamedAssignments:
        for axis, others in self._each():
            base = sequence(self.space, self.space.empty, axis)
            if base != self.space.empty:
                name = f"sequence over {axis}" + (f", data over {_list(others)}" if others else "")
                yield from self._stored(name, self._data(base, others), self.names)

    def _classes(self, classes: Sequence[int]) -> NamedAssignments:
        """A class over one axis, such as experts, and the batch over the others or over all."""
        for number in classes:
            title = class_name(self.space, number)
            for axis, others in self._each():
                base = put_on_class(self.space, self.space.empty, axis, number)
                yield f"{title} over {axis}", base
                if self.batches and others:
                    name = f"{title} over {axis}, data over "
                    yield from self._stored(f"{name}{_list(others)}", self._data(base, others), others)
                    yield from self._stored(f"{name}{_list(self.names)}", self._data(base, self.names), self.names)

    def _on_whole_mesh(self, classes: Sequence[int]) -> NamedAssignments:
        """A class over all axes, such as experts or rows of tables, with the batch or sequences over them too."""
        space, names = self.space, self.names
        for number in classes:
            base = both = on_all(space, space.empty, names, number)
            for axis in names:
                both = sequence(space, both, axis)
            title, over = f"{class_name(space, number)} over {_list(names)}", f"over {_list(names)}"
            yield from self._stored(f"{title}, data {over}", self._data(base, names), names)
            yield from self._stored(f"{title}, sequence {over}", both, names)
            yield from self._stored(title, base, names)

    def _combinations_of_three(self) -> NamedAssignments:
        """Megatron over one axis, another tactic over a second one, data over the remaining axes, if any."""
        space = self.space
        tasks: list[tuple[str, Callable[[Assignment, str], Assignment]]] = [
            (class_name(space, number), partial(_on_class, space, number)) for number in split_classes(space)
        ]
        tasks.append(("sequence", lambda base, axis: sequence(space, base, axis)))
        for one, other in permutations(reversed(self.names), 2):
            rest = [name for name in self.names if name not in (one, other)]
            for title, task in tasks:
                base = megatron(space, task(space.empty, other), one, self.styles[0])
                name = f"Megatron over {one}, {title} over {other}"
                if base != megatron(space, space.empty, one, self.styles[0]):
                    data = rest or [other]
                    yield from self._stored(f"{name}, data over {_list(data)}", self._data(base, data), data)
            both = megatron(space, megatron(space, space.empty, other, self.styles[0]), one, self.styles[0])
            if rest:
                yield from self._stored(
                    f"Megatron over {other}+{one}, data over {_list(rest)}", self._data(both, rest), rest
                )

    def _stored(self, name: str, base: Assignment, axes: Sequence[str], where: str = "") -> NamedAssignments:
        """A tactic, alone, with ZeRO-1 and with ZeRO-3 along axes."""
        if not where:
            yield name, base
        for title, groups in self.titles:
            yield f"{name}{title}{where}", store_all(self.space, base, axes, groups)


def _on_class(space: Space, number: int, base: Assignment, axis: str) -> Assignment:
    return put_on_class(space, base, axis, number)


def _list(axes: Sequence[str]) -> str:
    return "+".join(axes)
