"""`pyshardy-exchange-shards`: moves data between shards in a few collective-permutes without much waste."""

from __future__ import annotations

from collections.abc import Hashable

from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.errors import InvalidShardingError
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import RULE
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import get_sharding
from pyshardy.passes.base import Pass
from pyshardy.reshard.around_cost import cost_around
from pyshardy.reshard.plan import OpInput
from pyshardy.rules.ops import OPS
from pyshardy.rules.table import rule_of
from pyshardy.rules.traits import function_of_trait
from pyshardy.transforms.channels import Channels
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.exchanges.join import exchange_join
from pyshardy.transforms.exchanges.reshape_borders import exchange_borders
from pyshardy.transforms.exchanges.sharded_op import Environment, ShardedOp
from pyshardy.transforms.exchanges.whole import slice_first, slice_for_all
from pyshardy.transforms.reshards.kinds import kind_of

_JOIN = "stablehlo.concatenate"
_EXCHANGES = {name: traits.exchange_pieces for name, traits in OPS.items() if traits.exchange_pieces}
"""The functions for ops with one sharded operand; reshapes and concatenations also need the cost of resharding."""
_RESHAPE = "stablehlo.reshape"
_SLICE = "stablehlo.slice"
_MOST_DEVICES = 2**14
"""The most devices: for more, planning the messages takes too long."""


class ExchangeShards(Pass):
    """Exchange the data that shards need for slices, pads, concatenations, uneven reversals and reshapes.

    A shard of the result is an interval of the operand, which a few shards hold. The number of permutes does not depend
    on the number of shards: it is the largest number of shards with which one shard exchanges data. Each permute sends
    as much as its largest piece. The op is left to `sdy-resolve-permutation-factors` if there would be too many
    permutes, or if that pass sends no more.

    Attributes:
        before_reshards: Whether the pass runs before reshards are inserted. Then it handles only concatenations and
            reshapes, if resharding them would send more. It also lets the result of a slice be gathered instead of the
            operand.
    """

    before_reshards: bool = False

    name = "pyshardy-exchange-shards"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        env = Environment(context.attrs, Channels(op, context.attrs), use_replicas=False)
        for join in ops_named(op, (_JOIN,)):
            _exchange(join, context, env)
        if self.before_reshards:
            for cut in ops_named(op, (_SLICE,)):
                slice_first(cut, context.meshes)
        fine: set[Hashable] = set()
        for inner in ops_named(op, (_RESHAPE,) if self.before_reshards else {*_EXCHANGES, _RESHAPE}):
            kind = kind_of(inner)
            if kind not in fine and not _exchange(inner, context, env):
                fine.add(kind)


def _exchange(op: Op, context: PassContext, env: Environment) -> bool:
    """Insert the permutes of one op, if it needs any; return whether it got them."""
    try:
        return _exchange_op(op, context, env)
    except InvalidShardingError as error:
        raise PassError(op, str(error)) from error


def _exchange_op(op: Op, context: PassContext, env: Environment) -> bool:
    values = (*op.operands, op.result)
    if not all(value.type.is_static and 0 not in (value.type.shape or ()) for value in values):
        return False
    shardings = [get_sharding(value) for value in values]
    sharding, out_sharding = shardings[0], shardings[-1]
    if out_sharding is None or any(one is not None and one.unreduced for one in shardings):
        return False
    mesh = mesh_of(out_sharding, context.meshes)
    if mesh.is_single_device or mesh.is_empty or mesh.size > _MOST_DEVICES:
        return False
    if op.name == _JOIN:
        return exchange_join(ShardedOp(op, out_sharding, mesh, env), context.meshes, _alternative(op, context))
    if sharding is None or sharding.mesh != out_sharding.mesh or sharding.is_fully_replicated:
        return False
    sharded = ShardedOp(op, sharding, mesh, env)
    if op.name == _RESHAPE:
        return exchange_borders(sharded, _alternative(op, context))
    if sharding.dim_axes != out_sharding.dim_axes:
        return False
    if op.name == _SLICE and slice_for_all(sharded):
        return True
    return bool(function_of_trait("exchange_pieces", _EXCHANGES[op.name])(sharded))


def _alternative(op: Op, context: PassContext) -> int | None:
    """The elements that every device would send to reshard the op's operands and results; None if they stay."""
    rule = op.attrs.get(RULE) or rule_of(context.specs.spec(op))
    values = (*op.operands, op.result)
    if rule is None:
        return None
    shapes, shardings = tuple(value.type.shape for value in values), tuple(map(get_sharding, values))
    return cost_around(OpInput(op.name, rule, shapes, shardings, True), context.meshes)
