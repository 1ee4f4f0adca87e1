"""The intermediate values that a partitioner may constrain, and what a step costs with such constraints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Final

from pyshardy.costing.step_cost import StepCost
from pyshardy.errors import ShardyError, UsageError
from pyshardy.searching.autopartition.constraints import Constrained
from pyshardy.searching.autopartition.pricing import RoughPricer
from pyshardy.searching.autopartition.problem import Problem
from pyshardy.searching.autopartition.space import Assignment, Space
from pyshardy.source.values import ValueFact

READING: Final = "reading the annotations of a partitioner"
_MOST_PRICERS: Final = 8
_MOST_NAMES: Final = 4
_WITHOUT_LINES: Final = "intermediate values are named by lines of Python: load a function, or MLIR with its locations"


class ConstrainableValues:
    """The intermediate values of one problem.

    Args:
        problem: Gives the problem with constraints on some.
        find: Finds them; called when they are first asked for. By default there are none.
        none_because: If there are none, what to do about it.
    """

    def __init__(
        self,
        problem: Callable[[Constrained], Problem],
        find: Callable[[], Sequence[ValueFact]] = tuple,
        none_because: str = _WITHOUT_LINES,
    ) -> None:
        self._find, self._problem, self.none_because = find, problem, none_because
        self.found: dict[tuple[Assignment, object], StepCost | None] = {}
        self._pricers: dict[object, RoughPricer] = {}

    @cached_property
    def facts(self) -> tuple[ValueFact, ...]:
        """The values, in program order."""
        return tuple(self._find())

    def number(self, name: object, inputs: Sequence[str] = ()) -> int:
        """The position of the value of a name or a place.

        Args:
            name: One of its `keys`.
            inputs: The names of inputs, for the text of the error.

        Raises:
            UsageError: No value or several values are called so.
        """
        found = [number for number, fact in enumerate(self.facts) if name in fact.keys]
        if len(found) == 1:
            return found[0]
        if found:
            raise UsageError(
                READING,
                got=f"{name!r}, which {len(found)} values are called",
                needed=f"one of {', '.join(repr(self.facts[number].key) for number in found[:_MOST_NAMES])}",
            )
        keys = [fact.key for fact in self.facts]
        near = get_close_matches(str(name), [*inputs, *keys], n=_MOST_NAMES, cutoff=0.5)
        rest = [one for one in (*inputs[:_MOST_NAMES], *keys[:_MOST_NAMES]) if one not in near]
        raise UsageError(
            READING,
            got=f"{name!r}, which names no input" + (" and no intermediate value" if keys else ""),
            needed=f"one of {', '.join([*near, *rest][: 2 * _MOST_NAMES])}",
            hint="task.inputs and task.values list all names" if keys else self.none_because,
        )

    def price(self, space: Space, assignment: Assignment, constrained: Constrained) -> StepCost | None:
        """The rough estimate of an assignment with constraints; None if they cannot be propagated.

        Args:
            space: The decisions on inputs.
            assignment: The axes of inputs.
            constrained: The axes of values.
        """
        key = tuple(sorted(constrained.items()))
        if (assignment, key) not in self.found:
            self.found[assignment, key] = self._price(space, assignment, constrained, key)
        return self.found[assignment, key]

    def _price(self, space: Space, assignment: Assignment, constrained: Constrained, key: object) -> StepCost | None:
        try:
            if key not in self._pricers:
                while len(self._pricers) >= _MOST_PRICERS:
                    del self._pricers[next(iter(self._pricers))]
                self._pricers[key] = RoughPricer(self._problem(constrained), space.tied)
            pricer = self._pricers[key]
            return pricer.price(space.shardings(assignment, pricer.problem), space.base_bytes(assignment))
        except ShardyError:
            return None
