"""What there is to decide: groups of inputs that are sharded alike, and classes of dimensions that belong together.

Inputs that are named alike but for the number of a layer, and that are used alike, make a group. Dimensions that share
a factor of some op's sharding rule are in one class: batch, heads, hidden, vocabulary. So the number of decisions does
not grow with layers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Final, NamedTuple

from pyshardy.autopartition.problem import OutputFact, Problem
from pyshardy.autopartition.uses import DimUnion, used_alike
from pyshardy.core.sharding import TensorSharding

_INDEX: Final = re.compile(r"\[\d+\]")
_HEAD: Final = re.compile(r"[^\[.]*")
_RESULT: Final = re.compile(r"result(\[\d+\])?")

Dims = tuple[tuple[str, ...], ...]
"""Per dimension the names of its mesh axes, major to minor."""
Assignment = tuple[Dims, ...]
"""Per group the axes of its inputs."""


class Group(NamedTuple):
    """Inputs that are sharded alike.

    Attributes:
        name: Their names as one: `params['layers'][*]['w']`.
        members: Their positions among the inputs.
        outputs: The positions of the outputs that take their place in the next step.
        shape: Sizes of their dimensions.
        element: MLIR's text of the element type.
        bytes: Of each, as a whole.
        is_donated: Whether results may take their memory.
        fixed: The sharding that they have and keep; None if it is to be found.
        twin: The group of the parameters that they are the optimizer's state of; None if there is none.
    """

    name: str
    members: tuple[int, ...]
    outputs: tuple[int, ...]
    shape: tuple[int, ...]
    element: str
    bytes: int
    is_donated: bool
    fixed: TensorSharding | None
    twin: int | None = None


class DimClass(NamedTuple):
    """Dimensions that are sharded together.

    Attributes:
        places: Pairs of group and dimension; of a group that has the class twice, both.
        weight: Elements of the values in between that have it as their first dimension, as often as they are made.
        others: Elements of the values in between that have it elsewhere, counted likewise.
    """

    places: tuple[tuple[int, int], ...]
    weight: float
    others: float


class Space:
    """The decisions of a problem.

    Args:
        problem: The problem; inputs with a sharding keep it.

    Attributes:
        groups: The groups of inputs.
        classes: The classes of their dimensions.
        axes: Names and sizes of the mesh axes longer than one.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.axes = tuple((name, size) for name, size in problem.mesh.axes if size > 1)
        self.sizes = dict(self.axes)
        dims = DimUnion(problem)
        self.groups = _find_groups(problem, dims)
        self.tied = frozenset(output for group in self.groups for output in group.outputs)
        self.classes = _find_classes(self.groups, problem, dims)
        self.class_of = {place: number for number, one in enumerate(self.classes) for place in one.places}

    @property
    def empty(self) -> Assignment:
        """Nothing sharded."""
        return tuple(((),) * len(group.shape) for group in self.groups)

    def fits(self, group: int, dims: Dims) -> bool:
        """Whether inputs of a group can have these axes: each once, and shards of equal size."""
        used = [axis for axes in dims for axis in axes]
        if len(set(used)) < len(used):
            return False
        return all(
            size % prod(self.sizes[axis] for axis in axes) == 0 for size, axes in zip(self.groups[group].shape, dims)
        )

    def sharding(self, group: int, dims: Dims) -> TensorSharding:
        """The sharding of the inputs of a group."""
        fixed = self.groups[group].fixed
        return fixed if fixed is not None else TensorSharding(self.problem.mesh_name, [list(axes) for axes in dims])

    def shardings(self, assignment: Assignment) -> dict[int, TensorSharding]:
        """The shardings of the inputs and outputs of the problem's program by the numbers of their values."""
        found = {}
        for number, (group, dims) in enumerate(zip(self.groups, assignment)):
            sharding = self.sharding(number, dims)
            facts = [self.problem.inputs[member] for member in group.members]
            others = [self.problem.outputs[output] for output in group.outputs]
            for value in [fact.value for fact in facts] + [fact.value for fact in others]:
                if value >= 0 and self.problem.program.shardings[value] is None:
                    found[value] = sharding
        return found

    def base_bytes(self, assignment: Assignment) -> float:
        """What inputs, and outputs that take their place but not their memory, hold on a device all the time."""
        total = 0.0
        for number, (group, dims) in enumerate(zip(self.groups, assignment)):
            copies = len(group.members) + (0 if group.is_donated else len(group.outputs))
            total += group.bytes * copies / self.shards(number, dims)
        return total

    def shards(self, group: int, dims: Dims) -> int:
        """In how many shards the inputs of a group lie."""
        fixed = self.groups[group].fixed
        if fixed is None:
            return prod(self.sizes[axis] for axes in dims for axis in axes)
        mesh = self.problem.mesh
        return prod(axis.length(mesh) for dim in fixed.dims for axis in dim.axes)

    def is_free(self, group: int) -> bool:
        """Whether the sharding of a group is to be found."""
        return self.groups[group].fixed is None


def with_dims(assignment: Assignment, changes: Mapping[int, Dims]) -> Assignment:
    """An assignment with other axes for some groups.

    >>> with_dims(((("x",),), ((),)), {1: (("y",),)})
    ((('x',),), (('y',),))
    """
    return tuple(changes.get(number, dims) for number, dims in enumerate(assignment))


def _find_groups(problem: Problem, dims: DimUnion) -> tuple[Group, ...]:
    ties = _ties(problem)
    found: dict[object, list[int]] = {}
    for place, fact in enumerate(problem.inputs):
        key = (_INDEX.sub("[*]", fact.name), fact.shape, fact.element, fact.sharding, place in ties)
        found.setdefault(key, []).append(place)
    groups = []
    parts = [(len(like), members) for like in found.values() for members in used_alike(problem, dims, like)]
    for count, members in parts:
        first = problem.inputs[members[0]]
        groups.append(
            Group(
                name=_group_name(first.name, len(members), count),
                members=tuple(members),
                outputs=tuple(ties[member] for member in members if member in ties),
                shape=first.shape,
                element=first.element,
                bytes=first.bytes,
                is_donated=all(problem.inputs[member].is_donated for member in members),
                fixed=first.sharding,
            )
        )
    return _with_twins(groups)


def _group_name(first: str, members: int, count: int) -> str:
    """The name of a group of so many of those inputs that are named like its first."""
    if members == 1:
        return first
    return _INDEX.sub("[*]", first) if members == count else f"{first} and {members - 1} more"


def _with_twins(groups: Sequence[Group]) -> tuple[Group, ...]:
    """Groups that are named like an earlier one but for the beginning, of the same shape, are its state."""
    found: list[Group] = []
    tails: dict[tuple[str, tuple[int, ...]], int] = {}
    for number, group in enumerate(groups):
        tail = group.name[len(_head(group.name)) :]
        twin = None
        if group.outputs and tail and len(group.shape) > 0:
            twin = next(
                (other for (end, shape), other in tails.items() if shape == group.shape and group.name.endswith(end)),
                None,
            )
            if twin is None:
                tails[tail, group.shape] = number
        found.append(group._replace(twin=twin))
    return tuple(found)


def _head(name: str) -> str:
    match = _HEAD.match(name)
    return match.group() if match else ""


def _ties(problem: Problem) -> dict[int, int]:
    """By input the output that takes its place in the next step: arguments and results that are the same trees."""
    inputs: dict[str, dict[str, tuple[int, object]]] = {}
    for place, fact in enumerate(problem.inputs):
        head = _head(fact.name)
        inputs.setdefault(head, {})[fact.name[len(head) :]] = place, (fact.shape, fact.element)
    outputs: dict[str, dict[str, tuple[int, object]]] = {}
    for place, one in enumerate(problem.outputs):
        head = _result_head(one, problem.outputs)
        outputs.setdefault(head, {})[one.name[len(head) :]] = place, (one.shape, one.element)
    found: dict[int, int] = {}
    used: set[str] = set()
    for results in outputs.values():
        for head, arguments in inputs.items():
            if head in used or not _is_same_tree(arguments, results):
                continue
            donated = all(problem.inputs[place].is_donated for place, _ in arguments.values())
            if donated or any(arguments):
                used.add(head)
                found.update((place, results[tail][0]) for tail, (place, _) in arguments.items() if tail in results)
                break
    return found


def _is_same_tree(arguments: Mapping[str, tuple[int, object]], results: Mapping[str, tuple[int, object]]) -> bool:
    """Whether the leaves of an argument are all among those of a result; a leaf that nothing uses is no input."""
    return bool(arguments) and all(
        tail in results and results[tail][1] == key for tail, (_, key) in arguments.items()
    )  # fmt: skip


def _result_head(fact: OutputFact, outputs: Iterable[OutputFact]) -> str:
    """`result`, or `result[0]` where the function returns several."""
    match = _RESULT.match(fact.name)
    return match.group() if match else fact.name


def _find_classes(groups: Sequence[Group], problem: Problem, dims: DimUnion) -> tuple[DimClass, ...]:
    for group in groups:
        values = [problem.inputs[member].value for member in group.members]
        values += [problem.outputs[output].value for output in group.outputs]
        values = [value for value in values if value >= 0]
        for value in values[1:]:
            for dim in range(len(group.shape)):
                dims.unite((value, dim), (values[0], dim))
    return _classes(groups, problem, dims)


def _classes(groups: Sequence[Group], problem: Problem, dims: DimUnion) -> tuple[DimClass, ...]:
    program = problem.program
    weights: dict[int, float] = {}
    others: dict[int, float] = {}
    inputs = {fact.value for fact in problem.inputs}
    for value, shape in enumerate(program.shapes):
        if not shape or value in inputs:
            continue
        owner = program.owners[value]
        size = float(prod(shape)) * max(1, problem.times[owner] if owner >= 0 else 1)
        for dim in range(len(shape)):
            place = dims.find(value, dim)
            found = others if dim else weights
            found[place] = found.get(place, 0.0) + size
    places: dict[int, list[tuple[int, int]]] = {}
    for number, group in enumerate(groups):
        value = next(
            (problem.inputs[member].value for member in group.members if problem.inputs[member].value >= 0), -1
        )
        for dim, size in enumerate(group.shape if value >= 0 else ()):
            if size > 1:
                places.setdefault(dims.find(value, dim), []).append((number, dim))
    return tuple(
        DimClass(tuple(found), weights.get(root, 0.0), others.get(root, 0.0)) for root, found in places.items()
    )
