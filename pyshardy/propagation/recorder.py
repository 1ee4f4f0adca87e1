"""The record of visits, from which the trace is made.

A run only notes the inputs of every visit, which takes almost no time. A visit is a pure function of its inputs, so
its steps are computed when they are first read.

Source: docs/semantics/propagation.md#what-a-step-records
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, overload

from pyshardy.core.sharding import TensorSharding
from pyshardy.propagation.prepare import with_main_results
from pyshardy.propagation.program import Program
from pyshardy.propagation.step import AddedAxes, StepInput, explain_step
from pyshardy.propagation.trace import ERASED, GROUP_STEP, MAIN_RESULT, Step

Visit = tuple[Any, ...]
"""Op number, step, shardings before, user priority and op-priority round. For a copy between members of a sharding
group: `GROUP_STEP`, the member that was given the sharding, the member that gets it, the sharding. For a dead op
that is erased: `ERASED`, its number; those inside of it go with it."""


class Recording(NamedTuple):
    """The record of a run, with which a run with other annotations is compared.

    Attributes:
        visits: The visits that changed something, and the ops that were erased, in order.
        other_readers: Per value, the ops whose step looks at its sharding without computing or using it.
    """

    visits: Sequence[Visit] = ()
    other_readers: Mapping[int, Sequence[int]] = {}


class Steps(Sequence[Step]):
    """The steps of a run, computed from its visits when they are first read.

    Args:
        program: The program.
        visits: The visits that changed something, in order.

    Attributes:
        visits: The same.
    """

    __slots__ = ("_program", "visits", "_steps")

    def __init__(self, program: Program, visits: Sequence[Visit]) -> None:
        self._program = program
        self.visits = visits
        self._steps: tuple[Step, ...] | None = None

    def _all(self) -> tuple[Step, ...]:
        if self._steps is None:
            self._steps = tuple(steps_of(self._program, self.visits))
        return self._steps

    def __len__(self) -> int:
        return len(self._all())

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | Sequence[Step]:
        return self._all()[index]

    def __iter__(self) -> Iterator[Step]:
        return iter(self._all())

    def __bool__(self) -> bool:
        return bool(self.visits)

    def __eq__(self, other: object) -> bool:
        return self._all() == tuple(other) if isinstance(other, (Steps, tuple)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return f"<{len(self.visits)} visits>"


def steps_of(program: Program, visits: Sequence[Visit]) -> Iterator[Step]:
    """The moves of every visit, even those that writing the shardings drops.

    Args:
        program: The program.
        visits: The visits, in order.
    """
    _, kind_of, tensors = with_main_results(program)
    count, meshes = len(program.kind_of), program.meshes
    assert len(kind_of) >= count
    known: dict[tuple[StepInput, tuple[TensorSharding | None, ...]], tuple[AddedAxes, ...]] = {}
    number, cause = -1, None
    for visit in visits:
        if visit[0] == ERASED:
            continue
        if visit[0] == GROUP_STEP:
            assert cause is not None
            yield from _copies(cause, *visit[1:])
            continue
        op, step, current, user_priority, op_priority = visit
        number += 1
        moves = known.get((step, current))
        if moves is None:
            moves = known[step, current] = explain_step(step, current, meshes)
        values = tensors[op]
        for move in moves:
            cause = Step(
                number=number,
                op=op if op < count else MAIN_RESULT,
                source=None if move.source is None else values[move.source],
                target=values[move.target],
                source_tensor=move.source,
                target_tensor=move.target,
                dim=move.dim,
                factor=move.factor,
                axes=move.axes,
                is_kept=move.is_kept,
                direction=step.directions[move.factor],
                strategy=step.strategy,
                user_priority=user_priority,
                op_priority=op_priority,
            )
            yield cause


def _copies(cause: Step, value: int, member: int, sharding: TensorSharding) -> Iterator[Step]:
    """The steps that copy a sharding from one member of a sharding group to another, as part of the last visit."""
    for dim, dim_sharding in enumerate(sharding.dims):
        if dim_sharding.axes:
            yield Step(
                number=cause.number,
                op=GROUP_STEP,
                source=value,
                target=member,
                source_tensor=0,
                target_tensor=1,
                dim=dim,
                factor=dim,
                axes=dim_sharding.axes,
                is_kept=True,
                direction=cause.direction,
                strategy=cause.strategy,
                user_priority=cause.user_priority,
                op_priority=cause.op_priority,
            )
