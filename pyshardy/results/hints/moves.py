"""Other places for the axes of a collective: another dimension of an input, or of a value that a line computes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.core.spec import format_spec
from pyshardy.explain.collective_causes import Cause
from pyshardy.explain.origins import OriginKind, origin_of
from pyshardy.explain.why import Why
from pyshardy.ir.module import Module
from pyshardy.ir.source_values import SourceValue, constrained
from pyshardy.report.constraints import PlanConstraint
from pyshardy.report.patch import patch
from pyshardy.source.assignments import assignments, read_lines
from pyshardy.source.places import format_place

_MOST_ALIKE = 1
"""The number of other expressions of this shape to try where no expression of the value's own line is found."""


class ConstraintEdit(NamedTuple):
    """A constraint of the values that an expression of the source computes.

    Attributes:
        value: The expression.
        sharding: The sharding.
    """

    value: SourceValue
    sharding: TensorSharding

    def apply(self, module: Module) -> Module:
        """The program with it."""
        return constrained(module, [self])

    @property
    def text(self) -> str:
        """What to write, in words."""
        span = self.value.span
        spec = format_spec([axis.name for axis in axes] for axes in self.sharding.dim_axes)
        name = f"`{self._name}`" if self._name else f"the expression in columns {span.column} to {span.end_column}"
        return f"constrain {name} at {format_place(span[:3])} by jax.lax.with_sharding_constraint(..., {spec})"

    @property
    def patch(self) -> str:
        """The constraint as a patch of the source, for `patch -p1`; empty if the file cannot be read."""
        value = self.value
        if not read_lines(value.span.file):
            return ""
        axes = tuple(tuple(axis.name for axis in dim) for dim in self.sharding.dim_axes)
        return patch(
            [
                PlanConstraint(
                    self._name, value.function, *value.span, value.shape, value.element, axes, value.count, 0.0, 0.0
                )
            ]
        )

    @property
    def _name(self) -> str:
        """The variable that the expression is assigned to; empty if there is none, or the file cannot be read."""
        lines = read_lines(self.value.span.file)
        known = assignments(self.value.span.file, lines) if lines else {}
        return known[self.value.span].name if self.value.span in known else ""


def moved_inputs(why: Why, cause: Cause) -> Iterator[tuple[int, TensorSharding]]:
    """The inputs that the axes of a collective come from, each with such an axis on another dimension.

    Args:
        why: Explains the values of the propagated program.
        cause: The cause of the collective.
    """
    subject = why.subject
    seen = set()
    for value, dim, axes in cause.places:
        for axis in axes:
            for chain in why.history.chains(subject.holder(value), dim, axis):
                origin = origin_of(chain, subject, why.names)
                given = subject.program.shardings[origin.value]
                if origin.kind is not OriginKind.ARGUMENT or given is None:
                    continue
                for sharding in _moved(given, [axis.name], subject.program.shapes[origin.value], why):
                    if (origin.value, sharding) not in seen:
                        seen.add((origin.value, sharding))
                        yield origin.value, sharding


def moved_values(why: Why, cause: Cause, known: Sequence[SourceValue]) -> Iterator[ConstraintEdit]:
    """Constraints of the intermediate values of a collective, each with its axes on another dimension.

    Args:
        why: Explains the values of the propagated program.
        cause: The cause of the collective.
        known: The expressions whose values can be constrained.
    """
    subject = why.subject
    for number, _, axes in dict.fromkeys(cause.places):
        value = subject.holder(number)
        shape, sharding = subject.program.shapes[value], subject.sharding(value)
        if value in subject.given or sharding is None or shape is None:
            continue
        names = list(dict.fromkeys(axis.name for axis in axes))
        for expression in _expressions(why, value, shape, known):
            for moved in _moved(sharding, names, shape, why):
                yield ConstraintEdit(expression, moved)


def _expressions(why: Why, value: int, shape: tuple[int, ...], known: Sequence[SourceValue]) -> list[SourceValue]:
    """The expressions that may compute a value: those of its line, or else the first one of its shape."""
    subject = why.subject
    maker = subject.program.owners[value]
    label = why.names.label(maker) if 0 <= maker < subject.op_count else None
    alike = [one for one in known if one.shape == shape]
    here = [] if label is None else [one for one in alike if (one.span.file, one.span.line) == (label.file, label.line)]
    return here or alike[:_MOST_ALIKE]


def _moved(
    given: TensorSharding, names: Iterable[str], shape: tuple[int, ...] | None, why: Why
) -> Iterator[TensorSharding]:
    """Shardings in which some axes move, all together, to another dimension that they divide."""
    mesh = mesh_of(given, why.subject.program.meshes)
    names = list(names)
    if shape is None or any(not mesh.has_axis(name) for name in names):
        return
    left = [[axis for axis in dim.axes if axis.name not in names] for dim in given.dims]
    if any(not axis.is_full for axes in left for axis in axes):
        return  # JAX cannot write parts of axes
    for at, (dim, size) in enumerate(zip(given.dims, shape)):
        added = [axis.name for axis in dim.axes if axis.is_full and axis.name in names]
        if added == names or size % _ways([axis.name for axis in left[at]] + names, mesh):
            continue
        dims = [DimSharding([*axes, *(names if place == at else ())], False) for place, axes in enumerate(left)]
        yield TensorSharding(given.mesh, dims)


def _ways(names: Iterable[str], mesh: Mesh) -> int:
    found = 1
    for name in names:
        found *= mesh.axis_size(name)
    return found
