"""Reshards and all-reduces around one op that has a sharding rule.

Source: docs/semantics/reshards-and-collectives.md#ops-with-a-rule
Source: docs/semantics/reshards-and-collectives.md#partial-operands
Source: docs/semantics/reshards-and-collectives.md#partial-results
"""

from __future__ import annotations

from collections.abc import Sequence

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import sort_and_merge, subtract_axes
from pyshardy.core.sharding import ReductionKind, TensorSharding
from pyshardy.core.sharding_on_mesh import Meshes, mesh_of
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.shardings import get_sharding, set_sharding
from pyshardy.reshard.plan import OpPlan
from pyshardy.transforms.reduction_kinds import body_kind
from pyshardy.transforms.reshards.operand_shardings import OpOperand, make_all_reduce, make_reshard


def insert_after(new: Op, anchor: Op, value: Value) -> Op:
    """Insert an op on `value` after `anchor`, and redirect all other uses of the value to its result."""
    new.insert_after(anchor)
    value.replace_other_uses(new)
    return new


def reduce_operands(op: Op, meshes: Meshes) -> None:
    """All-reduce every operand along the axes along which it is unreduced and the results are not.

    Raises:
        PassError: The results differ in their unreduced axes, or there are none for an unreduced operand.
    """
    shardings = [get_sharding(value) for value in op.operands]
    if op.results:
        first, *others = [get_sharding(result) for result in op.results]
        kept = _unreduced(first)
        if any(_unreduced(other) != kept for other in others):
            raise PassError(op, "has results with different unreduced axes")
    for index, sharding in enumerate(shardings):
        if sharding is None or not sharding.unreduced:
            continue
        if not op.results:
            raise PassError(op, f"has operand {index} with unreduced axes but no results")
        OpOperand(op, index, meshes).reduce(first)


def _unreduced(sharding: TensorSharding | None) -> Axes:
    return () if sharding is None else sharding.unreduced


def reshard_around(op: Op, targets: Sequence[TensorSharding | None]) -> None:
    """Reshard the operands of an op to the shardings it needs, and its results back to their own.

    Args:
        op: The op.
        targets: The sharding that each operand, then each result needs; None for no change.
    """
    for index, target in enumerate(targets[: len(op.operands)]):
        if target is not None:
            reshard = make_reshard(op.operands[index], target).insert_before(op)
            op.set_operand(index, reshard.result)
    anchor = op
    for result, target in zip(op.results, targets[len(op.operands) :]):
        if target is None:
            continue
        old = get_sharding(result) or TensorSharding.fully_replicated(target.mesh, result.type.rank)
        set_sharding(result, target)
        anchor = insert_after(make_reshard(result, old), anchor, result)


def complete_partial_results(op: Op, plan: OpPlan, meshes: Meshes, mark: bool) -> None:
    """All-reduce the results of an op along the axes along which they are partial.

    Args:
        op: The op, resharded as planned.
        plan: The plan.
        meshes: The meshes of the module.
        mark: Whether to mark the op's own results as unreduced along these axes.
    """
    if not plan.reduced:
        return
    mesh = meshes[plan.mesh] if isinstance(plan.mesh, str) else plan.mesh
    axes = subtract_axes(plan.reduced, _unreduced(get_sharding(op.results[0])), mesh)
    kind = _reduction_kind(op)
    if not axes or kind is None:
        return
    axes = sort_and_merge(axes, mesh)
    anchor = op
    for result in op.results:
        sharding = get_sharding(result) or TensorSharding.fully_replicated(plan.mesh, result.type.rank)
        anchor = insert_after(make_all_reduce(result, axes, kind, sharding), anchor, result)
        if mark:
            unreduced = sort_and_merge(sharding.unreduced + axes, mesh_of(sharding, meshes))
            set_sharding(result, sharding.with_unreduced(unreduced, kind))


def _reduction_kind(op: Op) -> ReductionKind | None:
    """How the partial results of an op combine; None if no all-reduce does that."""
    if op.name == "stablehlo.scatter" or (op.name == "stablehlo.reduce" and len(op.results) > 1):
        return body_kind(op)
    return (body_kind(op) if op.name == "stablehlo.reduce" else None) or ReductionKind.SUM
