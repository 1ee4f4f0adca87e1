"""Ops with batch dimensions that may be sharded: top-k, and custom calls that declare them."""

from __future__ import annotations

from jaxlib.mlir import ir

from pyshardy.core.sharding import DimSharding, TensorSharding, is_equivalent
from pyshardy.ir.functions import RULE
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import Meshes, get_sharding
from pyshardy.ir.strings import string_value
from pyshardy.rules.ops import ops_that
from pyshardy.rules.rule_builder import RuleBuilder
from pyshardy.transforms.reshards.most_split import most_split
from pyshardy.transforms.reshards.op_reshards import reshard_around

_ATTRIBUTES = "mhlo.frontend_attributes"
_COUNT = "num_batch_dims"
TOP_K = ops_that(lambda traits: traits.is_top_k)
"""Ops that keep the largest elements along the last dimension; `@target` for custom calls."""


def is_top_k(op: Op) -> bool:
    """Whether an op keeps the largest elements along its last dimension."""
    is_call = op.name == "stablehlo.custom_call"
    return (f"@{string_value(op.attrs['call_target_name'])}" if is_call else op.name) in TOP_K


def batch_rank(op: Op) -> int:
    """The number of leading batch dimensions in all tensors of an op; 0 if it declares none or a wrong number."""
    if is_top_k(op):
        return op.operands[0].type.rank - 1
    attributes = op.attrs.get(_ATTRIBUTES) if op.name == "stablehlo.custom_call" else None
    if not isinstance(attributes, ir.DictAttr) or _COUNT not in attributes:
        return 0
    count = attributes[_COUNT]
    rank = int(string_value(count)) if isinstance(count, ir.StringAttr) and string_value(count).isdecimal() else 0
    values = (*op.operands, *op.results)
    if not all(value.type.is_ranked_tensor and value.type.is_static for value in values):
        return 0
    batches = {(value.type.shape or ())[:rank] for value in values}
    return rank if len(batches) == 1 and len(next(iter(batches))) == rank else 0


def split_batch(op: Op, rank: int, meshes: Meshes) -> None:
    """Reshard around an op so that its batch dimensions have equal axes in all tensors, and other dimensions none."""
    values = (*op.operands, *op.results)
    shardings = [get_sharding(value) for value in values]
    batches = [_batch_of(sharding, rank, sharding.rank) for sharding in shardings if sharding and sharding.dims]
    common = most_split([*batches], meshes)
    assert common is not None
    targets = [_batch_of(common, rank, value.type.rank) for value in values]
    same = [is_equivalent(target, sharding) for target, sharding in zip(targets, shardings)]
    reshard_around(op, [None if found else target for target, found in zip(targets, same)])
    builder = RuleBuilder([value.type.shape for value in op.operands], [value.type.shape for value in op.results])
    for dim, size in enumerate((values[0].type.shape or ())[:rank]):
        builder.factor(size, builder.everywhere(dim))
    op.set_attr(RULE, builder.finish())


def _batch_of(sharding: TensorSharding, rank: int, full_rank: int) -> TensorSharding:
    """A sharding of only the batch dimensions, for a tensor of another rank."""
    batch = sharding.dim_axes[:rank]
    dims = [DimSharding(axes) for axes in (*batch, *((),) * (full_rank - rank))]
    return TensorSharding.fully_replicated(sharding.mesh, full_rank).with_dims(dims)
