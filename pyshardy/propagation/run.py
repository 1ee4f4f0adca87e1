"""Propagation over a whole program: all user priorities, op priorities and strategies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pyshardy.core.sharding import TensorSharding
from pyshardy.propagation.engine import PropagationEngine
from pyshardy.propagation.options import PropagateOptions
from pyshardy.propagation.program import Program
from pyshardy.propagation.recorder import Recording, Steps, Visit
from pyshardy.propagation.schedule import LAST_ROUND, ROUNDS
from pyshardy.propagation.trace import Step
from pyshardy.propagation.user_priorities import user_priority_rounds


@dataclass(frozen=True, slots=True)
class Propagated:
    """The result of propagation.

    Attributes:
        shardings: The sharding of every value of the program, by number.
        erased: The ops that were removed as dead code, ascending.
        steps: The steps, in order; empty without `PropagateOptions.trace`. They are computed on first use.
        recording: The record that a run with other annotations is compared with; None if none was made.
    """

    shardings: tuple[TensorSharding | None, ...]
    erased: tuple[int, ...]
    steps: Sequence[Step]
    recording: Recording | None = field(default=None, repr=False, compare=False)


def propagate_program(
    program: Program,
    options: PropagateOptions = PropagateOptions(),
    after_user_priority: Callable[[int, PropagationEngine], None] | None = None,
) -> Propagated:
    """Infer a sharding for every value.

    Source: docs/semantics/propagation.md#schedules

    Args:
        program: The program; it does not change.
        options: How to propagate.
        after_user_priority: Called with the priority and the state after every round of user priorities.
    """
    visits: list[Visit] = []
    engine = PropagationEngine(program, options.conservative, visits)
    for priority in user_priority_rounds(engine) if options.user_priorities else (0,):
        engine.user_priority = priority
        for round_ in range(ROUNDS) if options.op_priorities else (LAST_ROUND,):
            for strategy in options.strategy.strategies:
                engine.run(strategy, round_)
        if after_user_priority is not None:
            after_user_priority(priority, engine)
    return Propagated(
        tuple(engine.shardings[: len(program.shapes)]),
        tuple(engine.erased),
        Steps(program, visits) if options.trace else (),
        Recording(visits, engine.other_readers),
    )
