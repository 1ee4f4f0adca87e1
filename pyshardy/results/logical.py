"""Brings the logical axes that a model names together with the shardings of a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyshardy.errors import UsageError
from pyshardy.frontend.input_names import names_inside, path_within
from pyshardy.frontend.jax_logical_names import logical_names
from pyshardy.ir.dtypes import known_bytes
from pyshardy.report.logical_fit import LogicalArrays, LogicalNames
from pyshardy.report.logical_rules import LogicalRules, logical_rules
from pyshardy.report.plan import PlanSpec, PlanSummary
from pyshardy.report.rules import without_end

_DOING = "finding logical axis rules of a plan"


def logical_rules_of(plan: PlanSummary, trees: Mapping[str, Any]) -> LogicalRules:
    """The logical axis rules that give inputs the shardings of a plan.

    Args:
        plan: The plan.
        trees: Trees with logical axes by the name of the argument, as `logical_names` reads them.

    Raises:
        UsageError: No input is in one of the trees, or an array has more names than dimensions.
    """
    named = list(logical_names(trees))
    inputs = [spec for spec in plan.specs if not spec.is_output]
    found: list[LogicalArrays] = []
    first: list[str] = []
    outputs = [spec for spec in plan.specs if spec.is_output]
    updated = {(path_within(spec.name, keys), spec.shape) for spec in outputs for keys in (1, 2)}
    known: set[int] = set()
    for spec in inputs:
        positions = names_inside(spec.name, [name for name, _ in named])
        known.update(positions)
        arrays = list(_arrays(spec, [named[position] for position in positions]))
        found += arrays
        path = path_within(spec.name)
        if not path or (path, spec.shape) not in updated:
            first += [name for one in arrays for name in one.names if name is not None]
    for argument in trees:
        if not any(names_inside(named[position][0], [argument]) for position in known):
            raise UsageError(
                _DOING,
                got=f"the argument {argument}, of which no array is an input of the plan",
                needed=f"arguments with inputs such as {', '.join(spec.name for spec in inputs[:3]) or 'none'}",
            )
    return logical_rules(found, plan.mesh, first)


def _arrays(spec: PlanSpec, named: Sequence[tuple[str, LogicalNames]]) -> Iterator[LogicalArrays]:
    """The inputs of a group; those of layers with other logical axes stand alone."""
    kinds: dict[LogicalNames, list[str]] = {}
    for name, axes in named:
        if len(axes) > len(spec.shape):
            needed = f"at most {len(spec.shape)}, as many as dimensions"
            raise UsageError(_DOING, where=name, got=f"{len(axes)} logical axes: {axes}", needed=needed)
        kinds.setdefault((*axes, *(None,) * (len(spec.shape) - len(axes))), []).append(name)
    size = known_bytes(spec.shape, spec.element)
    for names, members in kinds.items():
        is_one = len(kinds) == 1
        count = spec.count if is_one else len(members)
        inputs = (spec.name,) if is_one else tuple(members)
        yield LogicalArrays(inputs, names, without_end(spec.axes), count, count * size)
