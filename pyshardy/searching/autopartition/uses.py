"""The uses of inputs: the dimensions that ops shard together, and the inputs that ops use alike."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from pyshardy.propagation.program import Program
from pyshardy.rules.properties import ELEMENTWISE
from pyshardy.searching.autopartition.problem import Problem

_ENDS: Final = ("stablehlo.reduce", "func.return")
"""Ops whose results are not elements of the state any more."""
_LAYERS: Final = "layers"
"""The use of all inputs of repeated layers, whatever op uses them first."""


class DimUnion:
    """A union-find structure of the dimensions of all values, which connects dimensions of one factor of an op.

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
        """The number of the set of a dimension."""
        parent, place = self._parent, self._starts[value] + dim
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    def unite(self, one: tuple[int, int], other: tuple[int, int]) -> None:
        """Unite the sets of two dimensions, each given by its value and position."""
        self._parent[self.find(*one)] = self.find(*other)


def used_alike(problem: Problem, dims: DimUnion, members: Sequence[int]) -> list[list[int]]:
    """Inputs with similar names, in groups that ops use alike.

    Two inputs are in different groups if the first ops that use them treat them differently. So are they if dimensions
    at different positions are in one set. In a chain of weights, for example, the columns of the first are the rows of
    the second. Inputs of repeated layers form one group, since layers that were left out cannot be compared.

    Args:
        problem: The problem.
        dims: The sets of dimensions.
        members: The positions of the inputs, which have one shape.
    """
    values = [problem.inputs[member].value for member in members]
    if len(members) == 1:
        return [list(members)]
    of_layers = [_is_of_layers(problem, value) for value in values]
    known = [value for value, is_so in zip(values, of_layers) if is_so and value >= 0]
    uses_of_layers = {_first_use(problem, value) for value in known}
    beside = {_uses_beside_layers(problem, value) for value in known}
    groups: list[tuple[Hashable, set[tuple[int, int]], list[int]]] = []
    for member, value, is_of_layers in zip(members, values, of_layers):
        use: Hashable = _LAYERS if is_of_layers else _first_use(problem, value)
        places: set[tuple[int, int]] = set()
        if use is _LAYERS or use in uses_of_layers or (known and _uses_beside_layers(problem, value) in beside):
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
    """Whether sets that occur in both are at the same dimensions."""
    common = {number for number, _ in places} & {number for number, _ in taken}
    return {place for place in places if place[0] in common} == {place for place in taken if place[0] in common}


def _is_of_layers(problem: Problem, value: int) -> bool:
    """Whether repeated layers use an input, or its own layer is left out."""
    return value < 0 or bool(problem.layers) and any(problem.layers[op][0] >= 0 for op in problem.program.users[value])


def _uses_beside_layers(problem: Problem, value: int) -> frozenset[str]:
    """The names of the ops that use an input outside of repeated layers: all its ops, if its own layer is left out."""
    program = problem.program
    return frozenset(program.kind(op).name for op in program.users[value] if problem.layers[op][0] < 0)


def _first_use(problem: Problem, value: int) -> Hashable:
    """How the first op uses an input: the name of the op, the operand, and which of its dimensions the results have."""
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


def is_updated_alone(program: Program, value: int) -> bool:
    """Whether a program computes with a value element by element, and with the results of that, until it returns them.

    That is how optimizers use their state. Sums of elements, as for norms, do not count.

    Args:
        program: The program.
        value: The value of an input.
    """
    values = {value: None}
    left = [value]
    while left:
        for op in program.users[left.pop()]:
            name = program.kind(op).name
            if name in ELEMENTWISE:
                new = [other for other in program.tensors[op][len(program.operands[op]) :] if other not in values]
                values.update(dict.fromkeys(new))
                left += new
            elif name not in _ENDS:
                return False
    return True
