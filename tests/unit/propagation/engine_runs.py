"""Runs of the engine over small programs, for tests."""

from __future__ import annotations

import pytest

from pyshardy.core.mesh import Mesh
from pyshardy.propagation.engine import PropagationEngine
from pyshardy.propagation.options import PropagateOptions
from pyshardy.propagation.program import Program
from pyshardy.propagation.run import propagate_program
from pyshardy.propagation.schedule import LAST_ROUND
from pyshardy.propagation.step import Strategy
from support.small_programs import Builder

from ..core.short import mesh
from .short import text

S = (8, 8)
PQR = mesh("p=2 q=2 r=2")
STRATEGIES = pytest.mark.parametrize("strategy", Strategy)


def once(program: Program, values: list[int], strategy: Strategy = Strategy.BASIC) -> list[str | None]:
    """The shardings of some values after one run, as `sdy-basic-propagate` makes it."""
    engine = PropagationEngine(program)
    engine.run(strategy, LAST_ROUND)
    return [text(engine.shardings[value]) for value in values]


def priorities(program: Program, values: list[int]) -> list[str | None]:
    """The same after all rounds of op priorities."""
    found = propagate_program(program, PropagateOptions(user_priorities=False))
    return [text(found.shardings[value]) for value in values]


def builder(axes: Mesh = PQR) -> Builder:
    return Builder(m=axes)
