"""Short notation for steps: shardings as what follows the mesh, factor states as their axes."""

from __future__ import annotations

from collections.abc import Sequence

from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.propagation.program import Direction
from pyshardy.propagation.projection import FactorState, TensorState
from pyshardy.propagation.step import StepInput, Strategy, propagate_step
from pyshardy.rules.notation import parse_rule
from pyshardy.rules.rule import Rule, factor_symbol

from ..core.short import refs, sharding

BOTH = Direction.BOTH
MATMUL = "<([i, k], [k, j])->([i, j]) {i=8, j=8, k=8} reduction={k}>"
BINARY = "<([i, j], [i, j])->([i, j]) {i=8, j=8}>"


def text(found: TensorSharding | None) -> str | None:
    """What follows the mesh: `[{"x"}, {?}]`."""
    return None if found is None else str(found).partition(", ")[2].removesuffix(">")


def given(texts: Sequence[str | None]) -> list[TensorSharding | None]:
    """Shardings on `@m`, or on the mesh that the text starts with."""
    return [None if one is None else sharding(one) for one in texts]


def step_of(
    rule: Rule | str, strategy: Strategy, directions: Sequence[Direction] | None = None, **flags: bool
) -> StepInput:
    """A step; all directions by default."""
    rule = parse_rule(rule) if isinstance(rule, str) else rule
    return StepInput(rule, tuple(directions or [BOTH] * len(rule.factor_sizes)), strategy, **flags)


def after(step: StepInput, texts: Sequence[str | None], mesh: Mesh) -> list[str | None]:
    """All shardings after the step, operands first."""
    shardings = given(texts)
    for tensor, new in propagate_step(step, shardings, {"m": mesh}):
        shardings[tensor] = new
    return [text(found) for found in shardings]


def state(axes: str = "", *, closed: bool = False, minor: bool = True, overflow: str = "") -> FactorState:
    """The state of a factor; axes without quotes."""
    return FactorState(refs(axes), closed, minor, refs(overflow))


def tensor(*factors: FactorState | None, blocked: str = "") -> TensorState:
    """The state of a tensor; None for a factor that it does not have."""
    return TensorState({number: found for number, found in enumerate(factors) if found is not None}, refs(blocked))


def shown(found: TensorState) -> dict[str, str]:
    """The factors of a tensor in words: axes, and what is special about them."""
    return {factor_symbol(factor): _shown(one) for factor, one in found.factors.items()}


def _shown(found: FactorState) -> str:
    words = [str(axis).replace('"', "") for axis in found.axes]
    words += ["closed"] * found.is_closed + ["minor"] * found.is_minor_most
    if found.overflow:
        words += ["overflow", *(str(axis).replace('"', "") for axis in found.overflow)]
    return " ".join(words)
