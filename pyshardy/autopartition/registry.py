"""The partitioner that finds shardings: ours, or one that the user registered in its place.

A partitioner is a function from a `SearchTask` to annotations: axes by the names of inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from pyshardy.autopartition.explore import Explorer, Limits, Watch
from pyshardy.autopartition.pricing import Quick
from pyshardy.autopartition.problem import InputFact, Problem
from pyshardy.autopartition.space import Assignment, Dims, Space
from pyshardy.core.mesh import Mesh
from pyshardy.core.spec import PartitionSpec, axis_text
from pyshardy.core.text import named_type
from pyshardy.errors import UsageError

Axes = PartitionSpec | Iterable[str | Iterable[str] | None]
"""Per dimension of an input the names of its mesh axes, major to minor: a `PartitionSpec`, or lists of names."""
Annotations = Mapping[str, Axes]
"""Axes by the names of inputs; those that are not named are not sharded."""
Partitioner = Callable[["SearchTask"], Annotations]


@dataclass(frozen=True, eq=False)
class SearchTask:
    """The task of a partitioner.

    Attributes:
        problem: The program with its inputs and outputs, the mesh, and the hardware. Of many equal layers it has three.
        space: The groups of inputs, and the classes of their dimensions.
        budget_s: The seconds that the partitioner may take.
        seed: The seed of random choices.
        candidates: The number of candidates that it may look at.
        watch: Called when a better candidate is found; None for no call.
    """

    problem: Problem
    space: Space
    budget_s: float
    seed: int
    candidates: int
    watch: Watch | None
    explorer: Explorer

    @property
    def mesh(self) -> Mesh:
        """The mesh."""
        return self.problem.mesh

    @property
    def inputs(self) -> tuple[InputFact, ...]:
        """The inputs with names and shapes."""
        return self.problem.inputs

    def cost(self, annotations: Annotations) -> Quick | None:
        """The quick estimate for annotations; None if they cannot be propagated, or the search is over.

        Raises:
            UsageError: An input does not exist, or axes do not fit it.
        """
        return self.explorer.evaluate(assignment_of(self.space, annotations))


def task_of(problem: Problem, limits: Limits, budget_s: float, watch: Watch | None = None) -> SearchTask:
    """The task of a partitioner for a problem."""
    space = Space(problem)
    explorer = Explorer(space, limits, watch)
    return SearchTask(problem, space, budget_s, limits.seed, limits.most, watch, explorer)


def our_partitioner(task: SearchTask) -> dict[str, Dims]:
    """The partitioner that is used where no other is registered."""
    task.explorer.run()
    best = task.explorer.best
    return annotations_of(task.space, task.space.empty if best is None else best.assignment)


def annotations_of(space: Space, assignment: Assignment) -> dict[str, Dims]:
    """An assignment by the names of inputs; without those whose sharding is given."""
    return {
        space.problem.inputs[member].name: dims
        for group, dims in zip(space.groups, assignment)
        if group.fixed is None
        for member in group.members
    }


def assignment_of(space: Space, annotations: Annotations) -> Assignment:
    """The assignment of annotations by name; inputs of one group must have the same.

    Raises:
        UsageError: An input does not exist, or axes do not fit it.
    """
    names = {
        space.problem.inputs[member].name: number
        for number, group in enumerate(space.groups)
        for member in group.members
    }
    names.update({group.name: number for number, group in enumerate(space.groups)})
    found: list[Dims] = list(space.empty)
    for name, axes in annotations.items():
        doing = "taking annotations from a partitioner"
        if name not in names:
            raise UsageError(doing, got=f"{name!r}", needed=f"one of {', '.join(list(names)[:8])}")
        number = names[name]
        rank = len(space.groups[number].shape)
        needed = f"axes of {', '.join(space.sizes)}, each once, that divide {list(space.groups[number].shape)}"
        try:
            dims = _dims_of(axes)
        except TypeError:
            raise UsageError(
                doing, got=f"{axes!r} for {name}", needed=needed, hint='[["x"], []], or PartitionSpec("x", None)'
            ) from None
        dims = (*dims, *[()] * (rank - len(dims)))
        unknown = [axis for one in dims for axis in one if axis not in space.sizes]
        if unknown or len(dims) > rank or not space.fits(number, dims):
            raise UsageError(doing, got=f"{dims} for {name}", needed=needed)
        found[number] = dims
    return tuple(found)


def _dims_of(axes: Axes) -> Dims:
    """The axes of every dimension, given as one name, several names, or None.

    Raises:
        TypeError: They have another form, or more than names of axes: open dimensions, priorities.
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
    """Replace our search by a function, in `pyshardy.search` and in the pass `pyshardy-auto-partition`.

    The function takes a `SearchTask`: `inputs`, `mesh`, `problem.program`, `cost(annotations)`, `budget_s` and `seed`.
    It returns the axes of every dimension by the names of inputs.

    Args:
        function: The partitioner; None restores our own search.

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
    """Let a function find shardings inside of a `with` block, in this thread alone; None changes nothing.

    Raises:
        UsageError: It is no function.

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


def run_partitioner(task: SearchTask) -> Assignment:
    """The annotations of the current partitioner.

    Raises:
        UsageError: It returns no annotations, or some that do not fit.
    """
    found: Any = registered_partitioner()(task)
    if not isinstance(found, Mapping):
        raise UsageError(
            "running a partitioner", got=named_type(found), needed="annotations: axes by the names of inputs"
        )
    return assignment_of(task.space, found)
