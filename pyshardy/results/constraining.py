"""Puts the constraints of a plan into a loaded module."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import PurePath

from pyshardy.core.intern import register_cache
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.errors import UsageError
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import module_meshes
from pyshardy.ir.source_values import SourceValue, constrained, source_values
from pyshardy.report.constraints import PlanConstraint

_DOING = "applying constraints"


def with_plan_constraints(module: Module, constraints: Sequence[PlanConstraint], mesh: Mesh) -> Module:
    """A module with constraints on intermediate values, on their recomputations, and on their gradients.

    Args:
        module: The module; it has the mesh, and it does not change.
        constraints: The constraints.
        mesh: The mesh of their axes.

    Raises:
        UsageError: The module has no value of this shape where a constraint is.
    """
    name = next(name for name, known in module_meshes(module.root).items() if known == mesh)
    found = _values_of(module.root)
    pairs = [(_find(found, one), TensorSharding(name, [list(axes) for axes in one.axes])) for one in constraints]
    return constrained(module, pairs)


@lru_cache(maxsize=1)
def _values_of(root: Op) -> Sequence[SourceValue]:
    """Kept, as many constraints of one program are tried, one after the other."""
    return source_values(root)


register_cache(_values_of.cache_clear)


def _find(values: Sequence[SourceValue], constraint: PlanConstraint) -> SourceValue:
    """The value of a constraint; the directory of its file may differ."""
    fitting = [
        value
        for value in values
        if value.span[1:] == constraint.span[1:]
        and value.shape == constraint.shape
        and PurePath(value.span.file).name == PurePath(constraint.file).name
    ]
    if not fitting:
        raise UsageError(
            _DOING,
            got=f"{constraint.value} at {constraint.place}, columns {constraint.column} to {constraint.end_column}",
            needed=f"a module in which this line makes values of shape {list(constraint.shape)}",
            hint="load the function from the same source as for the search; for patched source, constraints=False",
        )
    return min(fitting, key=lambda value: value.span.file != constraint.file)
