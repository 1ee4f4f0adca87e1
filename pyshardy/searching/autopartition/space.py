"""The decisions of a search: groups of inputs that are sharded alike, and classes of dimensions sharded together.

Inputs whose names differ only by the number of a layer, and that ops use alike, form a group. Dimensions that share a
factor of some op's sharding rule form a class: batch, heads, hidden, vocabulary. The number of decisions therefore does
not grow with the number of layers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from math import prod
from typing import Final, NamedTuple

from pyshardy.core.alike import common, general
from pyshardy.core.axes import Dims
from pyshardy.core.sharding import TensorSharding
from pyshardy.searching.autopartition.problem import Permitted, Problem
from pyshardy.searching.autopartition.ties import head_of, ties_of
from pyshardy.searching.autopartition.uses import DimUnion, is_updated_alone, used_alike

_KEYS: Final = re.compile(r"\[[^\]]*\]|[^\[.]+")
_SMALL: Final = 5e-4
"""A group with this share of the bytes of all inputs is small."""

Assignment = tuple[Dims, ...]
"""Per group the axes of its inputs."""


class InputGroup(NamedTuple):
    """Inputs that are sharded alike.

    Attributes:
        name: One name for all of them, such as `params['layers'][*]['w']`.
        members: Their positions among the inputs.
        outputs: The positions of the outputs that replace them in the next step.
        shape: Sizes of their dimensions.
        element: MLIR's text of the element type.
        bytes: The unsharded size of each.
        is_donated: Whether results may reuse their memory.
        fixed: Their given sharding, which they keep; None if the search finds one.
        twin: The group of the parameters whose optimizer state they are; None for other inputs.
        permitted: Which axes they may have; None for all.
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
    permitted: Permitted | None = None

    @property
    def is_free(self) -> bool:
        """Whether the search finds their sharding."""
        return self.fixed is None


class DimClass(NamedTuple):
    """Dimensions that are sharded together.

    Attributes:
        places: Pairs of group and dimension; two for a group that has the class twice.
        weight: Elements of the intermediate values whose first dimension is of the class, once per computation.
        others: Elements of the intermediate values with another dimension of the class, once per computation.
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
        sizes: The same as a mapping.
        tied: The positions of the outputs that replace inputs in the next step.
        class_of: The number of the class by pair of group and dimension.
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
        self._dims = dims

    def classes_of(self, value: int) -> tuple[int, ...]:
        """The numbers of the classes of a value's dimensions; -1 for a dimension that no input has.

        Args:
            value: The number of a value in the problem's program.
        """
        numbers = self._numbers
        return tuple(numbers.get(self._dims.find(value, dim), -1) for dim in range(len(self._shape(value))))

    def _shape(self, value: int) -> tuple[int, ...]:
        return tuple(self.problem.program.shapes[value] or ())

    @cached_property
    def _numbers(self) -> dict[int, int]:
        """The numbers of classes by the sets of dimensions."""
        found = {}
        for number, one in enumerate(self.classes):
            group, dim = one.places[0]
            members = (self.problem.inputs[member].value for member in self.groups[group].members)
            found[self._dims.find(next(value for value in members if value >= 0), dim)] = number
        return found

    @cached_property
    def small(self) -> frozenset[int]:
        """The groups whose memory does not matter, such as norms and biases."""
        sizes = [self.bytes_of(number) for number in range(len(self.groups))]
        return frozenset(number for number, size in enumerate(sizes) if size < _SMALL * sum(sizes))

    def bytes_of(self, group: int) -> int:
        """The bytes of all members of a group, as a whole."""
        return self.groups[group].bytes * len(self.groups[group].members)

    @property
    def empty(self) -> Assignment:
        """The assignment that shards no input."""
        return tuple(((),) * len(group.shape) for group in self.groups)

    def fits(self, group: int, dims: Dims) -> bool:
        """Whether inputs of a group can have these axes: each once, allowed, and with shards of equal size."""
        return self.permits(group, dims) and are_equal_shards(self.groups[group].shape, dims, self.sizes)

    def permits(self, group: int | None, dims: Dims) -> bool:
        """Whether the limits of the user leave these axes to the inputs of a group, or, by None, to a constraint."""
        permitted = self.problem.permitted if group is None else self.groups[group].permitted
        return permitted is None or permitted.allows(dims)

    def sharding(self, group: int, dims: Dims) -> TensorSharding:
        """The sharding of the inputs of a group."""
        fixed = self.groups[group].fixed
        return fixed if fixed is not None else TensorSharding(self.problem.mesh_name, [list(axes) for axes in dims])

    def shardings(self, assignment: Assignment, problem: Problem | None = None) -> dict[int, TensorSharding]:
        """The shardings of the inputs and outputs of the problem's program by the numbers of their values.

        Args:
            assignment: The axes.
            problem: Another problem with the same inputs and outputs, such as one with constraints.
        """
        problem = problem or self.problem
        found = {}
        for number, (group, dims) in enumerate(zip(self.groups, assignment)):
            sharding = self.sharding(number, dims)
            facts = [problem.inputs[member] for member in group.members]
            others = [problem.outputs[output] for output in group.outputs]
            for value in [fact.value for fact in facts] + [fact.value for fact in others]:
                if value >= 0 and problem.program.shardings[value] is None:
                    found[value] = sharding
        return found

    def base_bytes(self, assignment: Assignment) -> float:
        """The bytes per device of the inputs, and of the outputs that replace them without reusing their memory."""
        total = 0.0
        for number, (group, dims) in enumerate(zip(self.groups, assignment)):
            copies = len(group.members) + (0 if group.is_donated else len(group.outputs))
            total += group.bytes * copies / self.shards(number, dims)
        return total

    def shards(self, group: int, dims: Dims) -> int:
        """The number of shards of the inputs of a group."""
        fixed = self.groups[group].fixed
        if fixed is None:
            return prod(self.sizes[axis] for axes in dims for axis in axes)
        mesh = self.problem.mesh
        return prod(axis.length(mesh) for dim in fixed.dims for axis in dim.axes)


def are_equal_shards(shape: Sequence[int], dims: Dims, sizes: Mapping[str, int]) -> bool:
    """Whether axes are used once each, and cut a tensor into shards of equal size.

    Args:
        shape: Sizes of the dimensions.
        dims: The axes of each.
        sizes: The sizes of the axes.

    >>> are_equal_shards((8, 6), (("x",), ()), {"x": 4}), are_equal_shards((8, 6), ((), ("x",)), {"x": 4})
    (True, False)
    """
    used = [axis for axes in dims for axis in axes]
    if len(set(used)) < len(used):
        return False
    return all(size % prod(sizes[axis] for axis in axes) == 0 for size, axes in zip(shape, dims))


def with_dims(assignment: Assignment, changes: Mapping[int, Dims]) -> Assignment:
    """An assignment with other axes for some groups.

    >>> with_dims(((("x",),), ((),)), {1: (("y",),)})
    ((('x',),), (('y',),))
    """
    return tuple(changes.get(number, dims) for number, dims in enumerate(assignment))


def _find_groups(problem: Problem, dims: DimUnion) -> tuple[InputGroup, ...]:
    donated = [place for place, fact in enumerate(problem.inputs) if fact.is_donated]
    ties = ties_of(problem.inputs, problem.outputs, donated)
    found: dict[object, list[int]] = {}
    for place, fact in enumerate(problem.inputs):
        key = (general(fact.name), fact.shape, fact.element, fact.sharding, fact.permitted, place in ties)
        found.setdefault(key, []).append(place)
    groups = []
    parts = [(len(like), members) for like in found.values() for members in used_alike(problem, dims, like)]
    for count, members in parts:
        first = problem.inputs[members[0]]
        groups.append(
            InputGroup(
                name=_group_name([problem.inputs[member].name for member in members], count),
                members=tuple(members),
                outputs=tuple(ties[member] for member in members if member in ties),
                shape=first.shape,
                element=first.element,
                bytes=first.bytes,
                is_donated=all(problem.inputs[member].is_donated for member in members),
                fixed=first.sharding,
                permitted=first.permitted,
            )
        )
    return _with_twins(groups, problem)


def _group_name(names: Sequence[str], count: int) -> str:
    """The name of a group of inputs; `count` inputs are named like its first."""
    if len(names) == 1:
        return names[0]
    return common(names) if len(names) == count else f"{names[0]} and {len(names) - 1} more"


def _with_twins(groups: Sequence[InputGroup], problem: Problem) -> tuple[InputGroup, ...]:
    """Set `twin` of the groups of optimizer state: the group of the parameter that the state belongs to.

    State is returned, and a step only does arithmetic with it. It belongs to a group of the same shape that other ops
    use. Of several, the one whose path has the longest common end counts: `state['opt'][0].mu['w']` belongs to
    `state['params']['w']`.
    """
    tied = [number for number, group in enumerate(groups) if group.outputs and group.shape]
    state = {number for number in tied if _is_state(groups[number], problem)}
    if not state:
        return _with_named_twins(groups)
    found = list(groups)
    for number in state:
        alike = {
            other: _common_end(groups[number].name, groups[other].name)
            for other in tied
            if other not in state and groups[other].shape == groups[number].shape
        }
        twin = max(alike, key=lambda other: alike[other], default=None)
        found[number] = groups[number]._replace(twin=twin if twin is not None and alike[twin] else None)
    return tuple(found)


def _is_state(group: InputGroup, problem: Problem) -> bool:
    values = [problem.inputs[member].value for member in group.members]
    return all(is_updated_alone(problem.program, value) for value in values if value >= 0)


def _common_end(one: str, other: str) -> int:
    """How many keys two paths have in common at their ends."""
    keys = zip(reversed(_KEYS.findall(one)), reversed(_KEYS.findall(other)))
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], keys))


def _with_named_twins(groups: Sequence[InputGroup]) -> tuple[InputGroup, ...]:
    """Set `twin`: a group of the same shape as an earlier one, whose name ends alike, is its optimizer state."""
    found: list[InputGroup] = []
    tails: dict[tuple[str, tuple[int, ...]], int] = {}
    for number, group in enumerate(groups):
        tail = group.name[len(head_of(group.name)) :]
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


def _find_classes(groups: Sequence[InputGroup], problem: Problem, dims: DimUnion) -> tuple[DimClass, ...]:
    for group in groups:
        values = [problem.inputs[member].value for member in group.members]
        values += [problem.outputs[output].value for output in group.outputs]
        values = [value for value in values if value >= 0]
        for value in values[1:]:
            for dim in range(len(group.shape)):
                dims.unite((value, dim), (values[0], dim))
    return _classes(groups, problem, dims)


def _classes(groups: Sequence[InputGroup], problem: Problem, dims: DimUnion) -> tuple[DimClass, ...]:
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
