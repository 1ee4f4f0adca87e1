"""One propagation step through one op, as a pure function.

Source: docs/semantics/propagation.md#one-step
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import is_prefix
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import common_mesh, mesh_of
from pyshardy.errors import ShardyError
from pyshardy.propagation.aggressive import propagate_aggressive
from pyshardy.propagation.basic import propagate_basic
from pyshardy.propagation.program import Direction
from pyshardy.propagation.projection import TensorState, project, unproject
from pyshardy.rules.rule import Rule


class Strategy(Enum):
    """How conflicts between the tensors of an op are resolved."""

    __hash__ = object.__hash__  # lookups hash it, and the hash of `Enum` is a slow Python function

    BASIC = "basic"
    """Do not resolve them: propagate only axes that all tensors can follow."""
    AGGRESSIVE = "aggressive"
    """Prefer the larger tensor or, for element-wise ops, the factor that is sharded further."""


class StepError(ShardyError):
    """A step, or the restoring of a user priority, produced an invalid sharding.

    Attributes:
        op: Number of the op; results of the main function have numbers after those of the ops.
    """

    def __init__(self, op: int, cause: ShardyError) -> None:
        self.op = op
        super().__init__(cause.doing, got=cause.got, needed=cause.needed)


class StepInput(NamedTuple):
    """All inputs of a step besides the meshes and the shardings.

    Attributes:
        rule: The rule of the op.
        directions: Direction per factor.
        strategy: The strategy.
        is_conservative: Whether sub-axes are refused.
        is_elementwise: Whether the op is element-wise.
    """

    rule: Rule
    directions: tuple[Direction, ...]
    strategy: Strategy
    is_conservative: bool = False
    is_elementwise: bool = False


Update = tuple[int, TensorSharding]
"""The number of a tensor of the step, operands first, and its new sharding."""


class AddedAxes(NamedTuple):
    """Axes that a step adds to one factor of one tensor, and the tensor that they come from.

    Attributes:
        target: The tensor, operands first.
        dim: Its dimension that has the factor.
        factor: The factor.
        axes: The axes that are new there.
        source: The tensor that had them before; None if unknown.
        is_kept: Whether the target has them afterwards; writing drops axes that would need a strided layout.
    """

    target: int
    dim: int
    factor: int
    axes: Axes
    source: int | None
    is_kept: bool


def propagate_step(
    step: StepInput, shardings: Sequence[TensorSharding | None], meshes: Mapping[str, Mesh]
) -> tuple[Update, ...]:
    """The new shardings of one step, in the order in which to write them.

    Args:
        step: Rule, directions and strategy.
        shardings: Sharding of every tensor of the rule, operands first.
        meshes: The meshes by name.

    >>> from pyshardy.core.notation import parse_sharding
    >>> from pyshardy.rules.notation import parse_rule
    >>> dot = parse_rule("<([i, k], [k, j])->([i, j]) {i=8, j=8, k=8} reduction={k}>")
    >>> step = StepInput(dot, (Direction.BOTH,) * 3, Strategy.BASIC)
    >>> left = parse_sharding('<@m, [{"x"}, {}]>')
    >>> propagate_step(step, (left, None, None), {"m": Mesh([("x", 2)])})
    ((2, TensorSharding(<@m, [{"x", ?}, {?}]>)),)
    """
    mesh_ref_and_mesh = _mesh_of_all(shardings, meshes)
    if mesh_ref_and_mesh is None or mesh_ref_and_mesh[1].is_single_device:
        return ()
    mesh_ref, mesh = mesh_ref_and_mesh
    states, changed = _run(step, shardings, mesh)
    rule = step.rule
    updates = []
    for tensor in sorted({tensor for tensor, _ in changed}):
        old = shardings[tensor]
        dims = unproject(states[tensor], rule.tensors[tensor], rule.factor_sizes, mesh, () if old is None else old.dims)
        if old is not None:
            new = TensorSharding._make((mesh_ref, dims, old.replicated, old.unreduced, old.reduction))
        elif any(dim.axes for dim in dims):
            new = TensorSharding(mesh_ref, dims)
        else:
            continue
        if new is not old:
            updates.append((tensor, new))
    return tuple(updates)


def _mesh_of_all(
    shardings: Sequence[TensorSharding | None], meshes: Mapping[str, Mesh]
) -> tuple[str | Mesh, Mesh] | None:
    """`common_mesh`, with a shortcut if all shardings name the same mesh."""
    first = None
    for sharding in shardings:
        if sharding is None:
            continue
        if first is None:
            first = sharding
        elif sharding.mesh is not first.mesh:
            return common_mesh(shardings, meshes)
    return None if first is None else (first.mesh, mesh_of(first, meshes))


def explain_step(
    step: StepInput, shardings: Sequence[TensorSharding | None], meshes: Mapping[str, Mesh]
) -> tuple[AddedAxes, ...]:
    """The moves of a step: for every factor that it extends, the new axes and the tensor that had them before.

    The source is the first operand, else the first result, that was already sharded on the factor at least as
    far as the target is afterwards.

    Source: docs/semantics/propagation.md#what-a-step-records
    """
    found = _mesh_of_all(shardings, meshes)
    if found is None or found[1].is_single_device:
        return ()
    mesh = found[1]
    before = _project_all(step.rule, shardings, mesh)
    states, changed = _run(step, shardings, mesh)
    places = {
        (tensor, factor): (tensor, dim, position)
        for tensor, mapping in enumerate(step.rule.tensors)
        for dim, factors in enumerate(mapping)
        for position, factor in enumerate(factors)
    }
    after = dict(propagate_step(step, shardings, meshes))
    moves = []
    for tensor, factor in sorted(changed, key=places.__getitem__):
        dim = places[tensor, factor][1]
        new, old = states[tensor].factors[factor].axes, before[tensor].factors[factor].axes
        source = next((other for other, state in enumerate(before) if _has(state, factor, new)), None)
        kept = next((index for index, (one, two) in enumerate(zip(old, new)) if one is not two), len(old))
        moved = new[kept:]
        moves.append(AddedAxes(tensor, dim, factor, moved, source, _is_on(after.get(tensor), dim, moved)))
    return tuple(moves)


def _is_on(sharding: TensorSharding | None, dim: int, axes: Axes) -> bool:
    return sharding is not None and all(any(on.contains(axis) for on in sharding.dims[dim].axes) for axis in axes)


def _has(state: TensorState, factor: int, axes: Axes) -> bool:
    found = state.factors.get(factor)
    return found is not None and is_prefix(axes, found.axes)


def _project_all(rule: Rule, shardings: Sequence[TensorSharding | None], mesh: Mesh) -> list[TensorState]:
    sizes = rule.factor_sizes
    found = []
    for tensor, mapping in enumerate(rule.tensors):
        found.append(project(shardings[tensor], mapping, sizes, mesh))
    return found


def _run(
    step: StepInput, shardings: Sequence[TensorSharding | None], mesh: Mesh
) -> tuple[list[TensorState], list[tuple[int, int]]]:
    states = _project_all(step.rule, shardings, mesh)
    if step.strategy is Strategy.BASIC:
        changed = propagate_basic(step.rule, states, step.directions, mesh, step.is_conservative)
    else:
        changed = propagate_aggressive(
            step.rule, states, step.directions, mesh, step.is_conservative, step.is_elementwise
        )
    return states, changed
