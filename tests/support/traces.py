"""Whether the recorded steps of propagation explain its result."""

from __future__ import annotations

from collections.abc import Iterator

from pyshardy.core.axes import AxisRef
from pyshardy.core.sharding import TensorSharding
from pyshardy.propagation.program import Program
from pyshardy.propagation.run import Propagated


def unexplained(program: Program, propagated: Propagated) -> Iterator[str]:
    """The axes that steps do not explain: axes from a value that did not have them, and axes that no step placed.

    Replays the steps: a value has the axes the user gave it and those that earlier steps placed on it; the edge of a
    manual computation also has its manual axes. If nothing is left open, every axis of the result goes back, step by
    step, to something that the user annotated.
    """
    owned = {value: _axes(sharding) for value, sharding in enumerate(program.shardings)}
    for op in program.ops:
        if op.view is not None:
            owned[op.results[0]] += [axis for axis in _axes(op.view.outer) if axis.name in op.view.manual_axes]
    for number, step in enumerate(propagated.steps):
        for axis in step.axes:
            if step.source is None:
                yield f"step {number} places {axis} on {step.target} from nowhere"
            elif not _covers(owned[step.source], axis, program):
                yield f"step {number} takes {axis} from {step.source}, which has {owned[step.source]}"
        if step.is_kept:
            owned[step.target] += step.axes
    for value, sharding in enumerate(propagated.shardings):
        for axis in _axes(sharding):
            if not _covers(owned[value], axis, program):
                yield f"{axis} of {value} was placed by no step"


def _axes(sharding: TensorSharding | None) -> list[AxisRef]:
    return [] if sharding is None else [axis for dim in sharding.dims for axis in dim.axes]


def _covers(owned: list[AxisRef], axis: AxisRef, program: Program) -> bool:
    """Whether the parts of the axis that are owned make up all of it."""
    mesh = next(mesh for mesh in program.meshes.values() if mesh.has_axis(axis.name))
    parts = sorted((part.pre_size, part.end(mesh)) for part in owned if part.name == axis.name)
    reached = axis.pre_size
    for start, end in parts:
        if start <= reached:
            reached = max(reached, end)
    return reached >= axis.end(mesh)
