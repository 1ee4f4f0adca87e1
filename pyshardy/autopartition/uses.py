"""How a program uses its inputs: the dimensions that belong together, and the inputs that are used alike."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from pyshardy.autopartition.problem import Problem

_LAYERS: Final = "layers"
"""In the place of what the first op does that uses an input, for layers of which some are left out."""


class DimUnion:
    """The dimensions of all values, in sets that are connected by factors of sharding rules.

    Args:
        problem: The problem.
    """

    def __init__(self, problem: Problem) -> None:
        program = problem.program
        starts = [0]
        for shape in program.shapes:
            starts.append(starts[-1] + len(shape or ()))
        self._starts, self._parent = starts, list(range(starts[-1]))
        for number in range(len(program.kind_of)):
            rule = program.kind(number).rule
            if rule is None:
                continue
            first: dict[int, tuple[int, int]] = {}
            for value, mapping in zip(program.tensors[number], rule.tensors):
                for dim, factors in enumerate(mapping if value >= 0 else ()):
                    factor = factors[0]
                    if rule.factor_sizes[factor] > 1 and factor not in rule.blocked:
                        self.unite((value, dim), first.setdefault(factor, (value, dim)))
        for pair in program.main_results:
            for dim in range(len(program.shapes[pair.returned] or ())):
                self.unite((pair.returned, dim), (pair.result, dim))

    def find(self, value: int, dim: int) -> int:
        """The number of the set that a dimension is in."""
        parent, place = self._parent, self._starts[value] + dim
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    def unite(self, one: tuple[int, int], other: tuple[int, int]) -> None:
        """Make one set of two, given by a value and a dimension of each."""
        self._parent[self.find(*one)] = self.find(*other)


def used_alike(problem: Problem, dims: DimUnion, members: Sequence[int]) -> list[list[int]]:
    """Inputs with like names, in groups of like uses.

    Two are not if the first op that uses each does something else with them, nor if a dimension of one belongs to
    another dimension of the other: of weights that follow each other, the columns of the first are the rows of the
    second. Of many equal layers some are left out, so that this cannot be seen: what these use is one group.

    Args:
        problem: The problem.
        dims: Which dimensions belong together.
        members: Positions of inputs of one shape.
    """
    values = [problem.inputs[member].value for member in members]
    if len(members) == 1:
        return [list(members)]
    of_layers = [_is_of_layers(problem, value) for value in values]
    uses_of_layers = {_first_use(problem, value) for value, is_so in zip(values, of_layers) if is_so and value >= 0}
    groups: list[tuple[Hashable, set[tuple[int, int]], list[int]]] = []
    for member, value, is_of_layers in zip(members, values, of_layers):
        use: Hashable = _LAYERS if is_of_layers else _first_use(problem, value)
        places: set[tuple[int, int]] = set()
        if use is _LAYERS or use in uses_of_layers:
            use = _LAYERS
        else:
            places = {(dims.find(value, dim), dim) for dim in range(len(problem.inputs[member].shape))}
        for other, taken, group in groups:
            if other == use and _agree(places, taken):
                group.append(member)
                taken |= places
                break
        else:
            groups.append((use, places, [member]))
    return [group for _, _, group in groups]


def _agree(places: set[tuple[int, int]], taken: set[tuple[int, int]]) -> bool:
    """Whether classes that both have are at the same dimensions."""
    common = {number for number, _ in places} & {number for number, _ in taken}
    return {place for place in places if place[0] in common} == {place for place in taken if place[0] in common}


def _is_of_layers(problem: Problem, value: int) -> bool:
    """Whether an input is used by layers of which some are left out, or by one that is."""
    return value < 0 or bool(problem.layers) and any(problem.layers[op][0] >= 0 for op in problem.program.users[value])


def _first_use(problem: Problem, value: int) -> Hashable:
    """What the first op that uses an input does with it: its name, and which dimensions its results have too."""
    program = problem.program
    users = program.users[value]
    if not users:
        return None
    user = min(users)
    kind = program.kind(user)
    if kind.rule is None or value not in program.tensors[user]:
        return kind.name
    position = list(program.tensors[user]).index(value)
    kept = {factor for mapping in kind.rule.results for factors in mapping for factor in factors}
    roles = tuple(not kept.isdisjoint(factors) for factors in kind.rule.tensors[position])
    return kind.name, position, roles
