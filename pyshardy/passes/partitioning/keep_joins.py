"""`pyshardy-keep-joins`: concatenations stay sharded along the joined dimension where that sends least."""

from __future__ import annotations

from pyshardy.core.sharding import TensorSharding, mesh_of, shard_counts
from pyshardy.ir.functions import RULE
from pyshardy.ir.listing import ops_named
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import get_sharding
from pyshardy.passes.base import Pass, PassContext
from pyshardy.passes.partitioning.permutation.exchanges import whole_operands
from pyshardy.reshard.moves import join_move
from pyshardy.rules.rule import FactorKind, Rule
from pyshardy.rules.table import rule_of


class KeepJoins(Pass):
    """Let concatenations stay sharded along the joined dimension where their shards can send each other what they need.

    For that the joined dimension becomes a permutation in the op's rule. It does where the operands, as far as they are
    sharded along it, are so by the axes of the result, and where moving all of them to another dimension and back
    would send more.
    """

    name = "pyshardy-keep-joins"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        for inner in ops_named(op, ("stablehlo.concatenate",)):
            rule = inner.shared_attrs.get(RULE) or rule_of(context.specs.spec(inner))
            if rule is not None and not rule.is_custom and _stays_sharded(inner, context):
                inner.attrs[RULE] = _with_permutation(rule, rule.results[0][inner.attrs["dimension"].value][0])


def _with_permutation(rule: Rule, factor: int) -> Rule:
    kinds = [FactorKind.PERMUTATION if index == factor else kind for index, kind in enumerate(rule.kinds)]
    return Rule(rule.factor_sizes, rule.operands, rule.results, kinds, rule.blocked)


def _stays_sharded(op: Op, context: PassContext) -> bool:
    sharding, dim = get_sharding(op.result), op.attrs["dimension"].value
    values = (*op.operands, op.result)
    if sharding is None or not all(value.type.is_static and 0 not in (value.type.shape or ()) for value in values):
        return False
    mesh = mesh_of(sharding, context.meshes)
    if mesh.is_single_device or mesh.is_empty or not sharding.dim_axes[dim] or sharding.unreduced:
        return False
    whole = whole_operands(op, dim, sharding, context.meshes)
    sharded = [value for value, found in zip(op.operands, whole) if found is None]
    if not sharded or not all(_is_alike(get_sharding(value), sharding, dim) for value in sharded):
        return False
    count = shard_counts(sharding, mesh)[dim]
    sizes = [(value.type.shape or ())[dim] for value in op.operands]
    move = join_move(sizes, count, tuple(found is not None for found in whole))
    return move.is_short and (not _can_move(op, sharding, dim, count) or move.plan.sent <= _moved_size(sizes, count))


def _is_alike(found: TensorSharding | None, sharding: TensorSharding, dim: int) -> bool:
    return found is not None and found.mesh == sharding.mesh and found.dim_axes == sharding.dim_axes


def _can_move(op: Op, sharding: TensorSharding, dim: int, count: int) -> bool:
    """Whether another dimension can be sharded evenly by the axes of the joined one."""
    shape = op.result.type.shape or ()
    return any(
        other != dim and not axes and shape[other] % count == 0 for other, axes in enumerate(sharding.dim_axes)
    )


def _moved_size(sizes: list[int], count: int) -> int:
    """How much of the dimension a device sends to have other dimensions sharded in between."""
    held = sum(-(-size // count) for size in sizes) + -(-sum(sizes) // count)
    return held * (count - 1) // count
