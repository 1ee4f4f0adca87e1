"""The work of a visit, by the kind of the op and by round. The outcome of each distinct step is computed once.

Source: docs/semantics/propagation.md#the-fixed-point
"""

from __future__ import annotations

from collections.abc import Sequence

from pyshardy.core.sharding import TensorSharding
from pyshardy.errors import InvalidShardingError
from pyshardy.propagation.program import OpKind, Program
from pyshardy.propagation.projection import axes_if_same
from pyshardy.propagation.schedule import ROUNDS, scheduled
from pyshardy.propagation.step import StepError, StepInput, Strategy, Update, propagate_step
from pyshardy.rules.properties import Priority

ALL_ROUNDS = (1 << ROUNDS) - 1
"""The bit set of all rounds."""
Current = tuple[TensorSharding | None, ...]
StepOutcome = tuple[tuple[Update, ...], int]
"""The outcome of a step for given shardings: the new ones, and the rounds in which another visit would change nothing
after they are written."""


class StepPlan:
    """The work of all ops of one kind in one round.

    Attributes:
        step: Rule, directions and strategy; None if nothing propagates through the kind.
        same: Bit set of the rounds in which the kind does the same.
        outcomes: The outcomes of the step, by the given shardings. A step is a pure function of them, and few of a
            program's many steps are distinct.
        waits: Whether an op of the kind is skipped while an operand has other uses.
    """

    __slots__ = ("step", "same", "outcomes", "waits")

    def __init__(self, step: StepInput | None, same: int, outcomes: dict[Current, StepOutcome], waits: bool) -> None:
        self.step = step
        self.same = same
        self.outcomes = outcomes
        self.waits = waits


class Plans:
    """The plans of one run over a program.

    Args:
        program: The program.
        kinds: Its kinds of ops, and those of the results of its main function.
        is_conservative: Whether conservative mode applies to the kinds that obey it.
    """

    def __init__(self, program: Program, kinds: Sequence[OpKind], is_conservative: bool) -> None:
        self._meshes = program.meshes
        self._kinds = kinds
        self._is_conservative = is_conservative
        self._plans: dict[tuple[Strategy, int], list[StepPlan | None]] = {}
        self._outcomes: dict[StepInput, dict[Current, StepOutcome]] = {}

    def of(self, strategy: Strategy, round_: int) -> list[StepPlan | None]:
        """The plan of every kind; None if not made yet, because later rounds visit few kinds."""
        found = self._plans.get((strategy, round_))
        if found is None:
            before = self._plans.get((strategy, round_ - 1)) or [None] * len(self._kinds)
            found = self._plans[strategy, round_] = [
                plan if plan is not None and plan.same >> round_ & 1 and not plan.waits else None for plan in before
            ]
        return found

    def make(self, number: int, strategy: Strategy, round_: int) -> StepPlan:
        """Make the plan of the kind with this number."""
        kind = self._kinds[number]
        rule = kind.rule
        if rule is None:
            return StepPlan(None, ALL_ROUNDS, {}, False)
        directions, same = scheduled(rule, kind.priority, kind.direction, round_)
        step = StepInput(
            rule,
            directions,
            strategy,
            self._is_conservative and not kind.ignores_conservative,
            kind.is_elementwise,
        )
        waits = round_ == 0 and kind.priority in (Priority.PASS_THROUGH, Priority.FORWARD)
        return StepPlan(step, same, self._outcomes.setdefault(step, {}), waits)

    def new_outcome(self, number: int, plan: StepPlan, current: Current) -> StepOutcome:
        """Compute the outcome of a step that was not taken before."""
        assert plan.step is not None
        if axes_if_same(plan.step.rule, current) is not None:
            found: StepOutcome = (), ALL_ROUNDS
        else:
            try:
                updates = propagate_step(plan.step, current, self._meshes)
            except InvalidShardingError as error:
                raise StepError(number, error) from error
            is_settled = updates and self._is_settled(plan, current, updates)
            found = updates, ALL_ROUNDS if is_settled else 0
        plan.outcomes[current] = found
        return found

    def _is_settled(self, plan: StepPlan, current: Current, updates: tuple[Update, ...]) -> bool:
        """Whether repeating the step at once would change nothing.

        There are two rare cases in which it changes something. Writing may drop an axis that would need a strided
        layout. A sub-axis may grow, and then no longer cut another one at an impossible position.
        """
        after = list(current)
        for tensor, sharding in updates:
            after[tensor] = sharding
        key = tuple(after)
        known = plan.outcomes.get(key)
        if known is not None:
            return not known[0]
        assert plan.step is not None
        if axes_if_same(plan.step.rule, key) is not None:
            plan.outcomes[key] = (), ALL_ROUNDS
            return True
        try:
            is_settled = not propagate_step(plan.step, key, self._meshes)
        except InvalidShardingError:
            return False
        if is_settled:
            plan.outcomes[key] = (), 0
        return is_settled
