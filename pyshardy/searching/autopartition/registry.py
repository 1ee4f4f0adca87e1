"""The partitioner that finds shardings: the built-in search, or one that the user registered instead.

A partitioner is a function from a `SearchTask` to annotations: axes by the names of inputs and of intermediate values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyshardy.core.axes import Dims
from pyshardy.core.mesh import Mesh
from pyshardy.core.spec import PartitionSpec, axis_text
from pyshardy.core.text import named_type
from pyshardy.costing.step_cost import StepCost
from pyshardy.errors import UsageError
from pyshardy.searching.autopartition.explore import Explorer, Limits, Watch
from pyshardy.searching.autopartition.problem import InputFact, Problem
from pyshardy.searching.autopartition.space import Assignment, Space, are_equal_shards
from pyshardy.searching.autopartition.values import READING, ConstrainableValues
from pyshardy.source.values import ValueFact

AxesPerDim = PartitionSpec | Iterable[str | Iterable[str] | None]
"""Per dimension of a tensor the names of its mesh axes, major to minor: a `PartitionSpec`, or lists of names."""
Annotations = Mapping[str, AxesPerDim]
"""Axes by the names of inputs, and of intermediate values that are to be constrained.

Inputs that are not named are not sharded; values that are not named are left to propagation.
"""
Partitioner = Callable[["SearchTask"], Annotations]


@dataclass(frozen=True, slots=True, eq=False)
class SearchTask:
    """The task of a partitioner.

    Attributes:
        problem: The program with its inputs and outputs, the mesh, and the hardware. Of many equal layers it has three.
        space: The groups of inputs, and the classes of their dimensions.
        budget_s: The seconds that the partitioner may take.
        seed: The seed of random choices.
        candidates: The number of candidates that it may price.
        watch: Called for every better candidate; None for no call.
        explorer: The built-in search, which keeps the candidates priced so far.
        between: The intermediate values that it may constrain.
    """

    problem: Problem
    space: Space
    budget_s: float
    seed: int
    candidates: int
    watch: Watch | None
    explorer: Explorer
    between: ConstrainableValues

    @property
    def mesh(self) -> Mesh:
        """The mesh."""
        return self.problem.mesh

    @property
    def inputs(self) -> tuple[InputFact, ...]:
        """The inputs, with their names and shapes."""
        return self.problem.inputs

    @property
    def values(self) -> tuple[ValueFact, ...]:
        """The intermediate values that can be constrained, with names, places and shapes."""
        return self.between.facts

    def cost(self, annotations: Annotations) -> StepCost | None:
        """The rough estimate for annotations; None if they cannot be propagated, or the search is over.

        Raises:
            UsageError: An input or a value does not exist, or axes do not fit it.
        """
        answer = self.answer(annotations)
        if not answer.constraints:
            return self.explorer.evaluate(answer.assignment)
        if self.explorer.is_over() or len(self.between.found) >= self.candidates:
            return None
        return self.between.price(self.space, answer.assignment, answer.constraints)

    def answer(self, annotations: Annotations) -> Answer:
        """Annotations, checked.

        Raises:
            UsageError: An input or a value does not exist, or axes do not fit it.
        """
        return answer_of(self.space, annotations, self.between)


class Answer(NamedTuple):
    """What annotations mean.

    Attributes:
        assignment: The axes of inputs.
        constraints: The axes of intermediate values by their position.
    """

    assignment: Assignment
    constraints: dict[int, Dims]


def task_of(
    problem: Problem,
    limits: Limits,
    budget_s: float,
    watch: Watch | None = None,
    between: ConstrainableValues | None = None,
) -> SearchTask:
    """The task of a partitioner for a problem.

    Args:
        problem: The problem.
        limits: When the search ends.
        budget_s: The seconds that it may take.
        watch: Called for every better candidate.
        between: The intermediate values that can be constrained; by default none.
    """
    space = Space(problem)
    explorer = Explorer(space, limits, watch)
    between = between or ConstrainableValues(lambda constrained: problem)
    return SearchTask(problem, space, budget_s, limits.seed, limits.most, watch, explorer, between)


def our_partitioner(task: SearchTask) -> dict[str, Dims]:
    """The built-in search, which runs unless another partitioner is registered."""
    task.explorer.run()
    best = task.explorer.best
    return annotations_of(task.space, task.space.empty if best is None else best.assignment)


def annotations_of(space: Space, assignment: Assignment) -> dict[str, Dims]:
    """The annotations of an assignment, without inputs whose sharding is given."""
    return {
        space.problem.inputs[member].name: dims
        for group, dims in zip(space.groups, assignment)
        if group.is_free
        for member in group.members
    }


def answer_of(space: Space, annotations: Annotations, between: ConstrainableValues | None = None) -> Answer:
    """The meaning of annotations by name. Inputs of one group are sharded alike.

    Args:
        space: The decisions on inputs.
        annotations: The annotations.
        between: The intermediate values; by default none.

    Raises:
        UsageError: An input or a value does not exist, or axes do not fit it, or are forbidden.
    """
    between = between or ConstrainableValues(lambda constrained: space.problem)
    inputs = space.problem.inputs
    names = {inputs[member].name: number for number, group in enumerate(space.groups) for member in group.members}
    names.update({group.name: number for number, group in enumerate(space.groups)})
    found: list[Dims] = list(space.empty)
    constraints = {}
    for name, axes in annotations.items():
        group = names.get(name)
        if group is not None:
            found[group] = dims = checked_dims(READING, name, axes, space.groups[group].shape, space.sizes)
        else:
            number = between.number(name, list(names))
            constraints[number] = dims = checked_dims(READING, name, axes, between.facts[number].shape, space.sizes)
        if not space.permits(group, dims):
            raise UsageError(
                READING, got=f"{dims} for {name}", needed="axes that the options of the search leave to it"
            )
    return Answer(tuple(found), constraints)


def checked_dims(doing: str, name: str, axes: AxesPerDim, shape: Sequence[int], sizes: Mapping[str, int]) -> Dims:
    """The axes of every dimension of a tensor.

    Args:
        doing: What is being done, for the text of an error.
        name: The tensor.
        axes: Its axes, as a partitioner gives them.
        shape: Its sizes.
        sizes: The sizes of the mesh axes.

    Raises:
        UsageError: They have another form, or do not fit the tensor.

    >>> checked_dims("reading", "x", PartitionSpec("data"), (8, 4), {"data": 2})
    (('data',), ())
    """
    needed = f"axes of {', '.join(sizes)}, each once, that divide {list(shape)}"
    try:
        dims = _dims_of(axes)
    except TypeError:
        hint = '[["x"], []], or PartitionSpec("x", None)'
        raise UsageError(doing, got=f"{axes!r} for {name}", needed=needed, hint=hint) from None
    dims = (*dims, *[()] * (len(shape) - len(dims)))
    unknown = [axis for one in dims for axis in one if axis not in sizes]
    if unknown or len(dims) > len(shape) or not are_equal_shards(shape, dims, sizes):
        raise UsageError(doing, got=f"{dims} for {name}", needed=needed)
    return dims


def _dims_of(axes: AxesPerDim) -> Dims:
    """The axes of every dimension, given as one name, several names, or None.

    Raises:
        TypeError: The axes have another form, or contain more than names: open dimensions, priorities.
    """
    if isinstance(axes, str):
        raise TypeError(axes)
    if not isinstance(axes, PartitionSpec):
        return tuple(() if entry is None else (entry,) if isinstance(entry, str) else tuple(entry) for entry in axes)
    dims = tuple(tuple(map(axis_text, dim.axes)) for dim in axes.dims)
    if PartitionSpec(*dims) != axes:
        raise TypeError(axes)
    return dims


_registered: list[Partitioner] = []
_in_use: ContextVar[Partitioner | None] = ContextVar("partitioner in use", default=None)


def register_partitioner(function: Partitioner | None) -> None:
    """Use a function instead of the built-in search, in `pyshardy.search` and the pass `pyshardy-auto-partition`.

    The function takes a `SearchTask`: `inputs`, `values`, `mesh`, `problem.program`, `cost(annotations)`, `budget_s`
    and `seed`. It returns the axes of every dimension by the names of inputs, and of intermediate values.

    Args:
        function: The partitioner; None restores the built-in search.

    Raises:
        UsageError: The argument is not a function.

    >>> register_partitioner(lambda task: {})
    >>> register_partitioner(None)
    """
    if function is not None and not callable(function):
        raise UsageError("registering a partitioner", got=named_type(function), needed="a function, or None")
    _registered[:] = [] if function is None else [function]


@contextmanager
def partitioner_in_use(function: Partitioner | None) -> Iterator[None]:
    """Use a function as the partitioner inside a `with` block, in this thread only; None changes nothing.

    Raises:
        UsageError: The argument is not a function.

    >>> with partitioner_in_use(lambda task: {}):
    ...     registered_partitioner() is our_partitioner
    False
    """
    if function is not None and not callable(function):
        raise UsageError("choosing a partitioner", got=named_type(function), needed="a function, or None")
    token = _in_use.set(function or _in_use.get())
    try:
        yield
    finally:
        _in_use.reset(token)


def registered_partitioner() -> Partitioner:
    """The current partitioner."""
    return _in_use.get() or (_registered[0] if _registered else our_partitioner)


def run_partitioner(task: SearchTask) -> Answer:
    """The annotations of the current partitioner.

    Raises:
        UsageError: The partitioner does not return annotations, or they do not fit the inputs.
    """
    found: Any = registered_partitioner()(task)
    if not isinstance(found, Mapping):
        needed = "annotations: axes by the names of inputs, and of intermediate values"
        raise UsageError("running a partitioner", got=named_type(found), needed=needed)
    return task.answer(found)
