"""An op with its tensors sharded, in short notation."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pyshardy.core.axes import Axes
from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.core.sharding import TensorSharding
from pyshardy.propagation.projection import TensorState
from pyshardy.reshard.factors import project_tensors
from pyshardy.rules.notation import parse_rule
from pyshardy.rules.rule import Rule

ABC = Mesh([("a", 2), ("b", 2), ("c", 2)])
ADD = parse_rule("<([i, j], [i, j])->([i, j]) {i=8, j=8}>")
DOT = parse_rule("<([i, k], [k, j])->([i, j]) {i=16, j=16, k=16} reduction={k}>")


def shardings(*texts: str | None) -> tuple[TensorSharding | None, ...]:
    """Shardings on `@m` from their dimensions, such as `{"a"}, {}`; None for a missing one."""
    return tuple(None if text is None else parse_sharding(f"<@m, [{text}]>") for text in texts)


def states(rule: Rule, *texts: str | None, mesh: Mesh = ABC) -> list[TensorState]:
    """The factors of the tensors of an op."""
    return project_tensors(rule, shardings(*texts), mesh)


def counts(rule: Rule) -> list[int]:
    """The number of elements of every tensor, if the factors make up the dimensions."""
    return [prod(rule.factor_sizes[factor] for dim in tensor for factor in dim) for tensor in rule.tensors]


def short(axes: Sequence[Axes]) -> list[str]:
    """Lists of axes as text, without quotes."""
    return [" ".join(map(str, one)).replace('"', "") for one in axes]
