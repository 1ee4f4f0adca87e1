"""What experts do, derived from the classes of dimensions of a program: the seeds of a search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations, permutations, product

from pyshardy.autopartition.moves import batch_class, put_on_class, states, store_all, weights
from pyshardy.autopartition.roles import Style, class_name, megatron, on_all, sequence, split_classes, styles
from pyshardy.autopartition.space import Assignment, Space
from pyshardy.autopartition.symmetry import Symmetry

Named = Iterator[tuple[str, Assignment]]


def tactics(space: Space) -> dict[str, Assignment]:
    """Assignments by the name of what they are, the plain ones first; those that are alike are there once."""
    found: dict[str, Assignment] = {}
    seen: set[Assignment] = set()
    symmetry = Symmetry(space)
    for name, assignment in _Tactics(space).all():
        key = symmetry.key(assignment)
        if key not in seen:
            seen.add(key)
            found[name] = assignment
    return found


class _Tactics:
    def __init__(self, space: Space) -> None:
        self.space, self.batch = space, batch_class(space)
        self.names = [name for name, _ in space.axes]
        self.styles = list(styles(space))
        self.titles = (("ZeRO-1", states(space)), ("ZeRO-3", weights(space)))

    def all(self) -> Named:
        """All tactics: what people do first, then what they do more seldom."""
        plain, others = self.styles[:1], self.styles[1:]
        yield from self._data_parallel(self.names)
        yield from self._megatron_and_data(plain)
        yield from self._megatron_on_all(self.styles)
        yield from self._sequences()
        yield "as it is, nothing added", self.space.empty
        yield from self._megatron_alone(plain)
        yield from self._megatron_and_data(others)
        yield from self._megatron_alone(others)
        for count in range(len(self.names) - 1, 0, -1):
            for axes in combinations(self.names, count):
                yield from self._data_parallel(axes)
        yield from self._classes()
        yield from self._threes()

    def _data(self, base: Assignment, axes: Sequence[str]) -> Assignment:
        return base if self.batch is None else on_all(self.space, base, axes, self.batch)

    def _data_parallel(self, axes: Sequence[str]) -> Named:
        if self.batch is not None:
            name = f"data over {_list(axes)}"
            base = self._data(self.space.empty, axes)
            yield from self._stored(name, base, axes)
            for axis in reversed(axes if len(axes) > 1 else ()):
                yield from self._stored(name, base, [axis], f" along {axis}")

    def _each(self) -> Iterator[tuple[str, list[str]]]:
        """Every axis with the others, the last axis first, since people give that to tensors."""
        for axis in reversed(self.names):
            yield axis, [name for name in self.names if name != axis]

    def _megatron_and_data(self, chosen: Sequence[Style]) -> Named:
        space = self.space
        for style, (axis, others) in product(chosen, self._each()):
            if self.batch is None or not others:
                continue
            name = f"Megatron{style.name(self.space)} over {axis}, data over {_list(others)}"
            both = self._data(megatron(space, space.empty, axis, style), others)
            yield from self._stored(name, both, others)
            yield from self._stored(f"{name}, sequence over {axis}", sequence(space, both, axis), others)

    def _megatron_on_all(self, chosen: Sequence[Style]) -> Named:
        for style in chosen:
            every = self.space.empty
            for axis in self.names:
                every = megatron(self.space, every, axis, style)
            yield f"Megatron{style.name(self.space)} over {_list(self.names)}", every

    def _megatron_alone(self, chosen: Sequence[Style]) -> Named:
        for style, (axis, _) in product(chosen, self._each()):
            yield f"Megatron{style.name(self.space)} over {axis}", megatron(self.space, self.space.empty, axis, style)

    def _sequences(self) -> Named:
        for axis, others in self._each():
            base = sequence(self.space, self.space.empty, axis)
            if base != self.space.empty:
                name = f"sequence over {axis}" + (f", data over {_list(others)}" if others else "")
                yield from self._stored(name, self._data(base, others), self.names)

    def _classes(self) -> Named:
        for number in split_classes(self.space):
            title = class_name(self.space, number)
            for axis, others in self._each():
                base = put_on_class(self.space, self.space.empty, axis, number)
                yield f"{title} over {axis}", base
                if self.batch is not None and others:
                    name = f"{title} over {axis}, data over "
                    yield from self._stored(f"{name}{_list(others)}", self._data(base, others), others)
                    yield from self._stored(f"{name}{_list(self.names)}", self._data(base, self.names), others)

    def _threes(self) -> Named:
        """Megatron over one axis, something else over another, data over the rest, which may be none."""
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

    def _stored(self, name: str, base: Assignment, axes: Sequence[str], where: str = "") -> Named:
        """A tactic, and the same where state, or all weights, are stored in parts along axes."""
        if not where:
            yield name, base
        for title, groups in self.titles:
            yield f"{name}, {title}{where}", store_all(self.space, base, axes, groups)


def _on_class(space: Space, number: int, base: Assignment, axis: str) -> Assignment:
    return put_on_class(space, base, axis, number)


def _list(axes: Sequence[str]) -> str:
    return "+".join(axes)
