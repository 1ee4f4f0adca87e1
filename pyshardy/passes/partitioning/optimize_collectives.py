"""`sdy-optimize-collectives`: removes collective-permutes before all-to-alls.

Source: docs/semantics/reshards-and-collectives.md#fewer-permutations
"""

from __future__ import annotations

from typing import Any

from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.ir.functions import SHARDING
from pyshardy.ir.nodes import Op, Value, ValueType
from pyshardy.ir.shardings import get_sharding, module_meshes
from pyshardy.passes.base import Anchor, Pass
from pyshardy.passes.partitioning.reshard_to_collectives import make_collective
from pyshardy.reshard.sub_dims import SubDims, plan_sub_dims, reordered_dim
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.rewriting.all_to_all import read_params
from pyshardy.transforms.rewriting.greedy import GreedyDriver, Rewriter


class OptimizeCollectives(Pass):
    """Let all-to-alls take axes from the middle of a dimension, without a collective-permute before.

    For this, the dimension is reshaped into one dimension per axis. The pass also removes dead ops and merges equal
    constants.
    """

    name = "sdy-optimize-collectives"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        GreedyDriver({"sdy.collective_permute": (without_permutation,)}, context.attrs, top_down=False).run(op)


def without_permutation(op: Op, rewriter: Rewriter) -> bool:
    """Replace a collective-permute and the all-to-alls after it by all-to-alls between two reshapes."""
    sharding = get_sharding(op.operands[0])
    type = op.result.type
    if sharding is None or not type.is_ranked_tensor or not type.is_static:
        return False
    *_, root = op.ancestors()
    mesh = mesh_of(sharding, module_meshes(root))
    reordering = reordered_dim(sharding, op.attrs["out_sharding"], mesh)
    chain = [] if reordering is None else _chain_behind(op, reordering.dim)
    if reordering is None or not chain:
        return False
    after = chain[-1].attrs["out_sharding"]
    plan = plan_sub_dims(reordering, sharding, list(map(read_params, chain)), after, type.shape or (), mesh)
    if plan is None:
        return False
    _rewrite(op, chain, plan, rewriter)
    return True


def _chain_behind(op: Op, dim: int) -> list[Op]:
    """The chain of all-to-alls after a collective-permute that move axes of one dimension."""
    chain: list[Op] = []
    while True:
        user = (chain[-1] if chain else op).result.only_user()
        if user is None or user.name != "sdy.all_to_all" or any(param.source != dim for param in read_params(user)):
            return chain
        chain.append(user)


def _rewrite(op: Op, chain: list[Op], plan: SubDims, rewriter: Rewriter) -> None:
    last = chain[-1]
    split = rewriter.attrs.ranked_type(plan.shape, op.result.type)
    found = rewriter.insert(_reshape(op.operands[0], split, plan.before, op.place), last)
    for step in plan.steps:
        found = rewriter.insert(make_collective(step, found.result, rewriter.attrs, op.place), last)
    joined = _reshape(found.result, op.result.type, last.attrs["out_sharding"], op.place)
    rewriter.replace(last, rewriter.insert(joined, last).result)
    for old in reversed([op, *chain[:-1]]):
        rewriter.erase(old)


def _reshape(value: Value, type: ValueType, sharding: TensorSharding, location: Any) -> Op:
    return Op("stablehlo.reshape", [value], [type], {SHARDING: (sharding,)}, location=location)
