"""Ops with batch dimensions that may be sharded: top-k, and custom calls that declare them."""

from __future__ import annotations

from collections.abc import Collection

from jaxlib.mlir import ir

from pyshardy.core.sharding import DimSharding, TensorSharding, is_equivalent
from pyshardy.ir.functions import RULE
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import ModuleMeshes, get_sharding
from pyshardy.ir.strings import string_value
from pyshardy.rules.ops import ops_that
from pyshardy.rules.rule_builder import RuleBuilder
from pyshardy.transforms.reshards.most_split import most_split
from pyshardy.transforms.reshards.op_reshards import reshard_around

_ATTRIBUTES = "mhlo.frontend_attributes"
_COUNT = "num_batch_dims"
_BACKEND = "mhlo.backend_config"
_DIMENSION = "reduction_dim"
TOP_K = ops_that(lambda traits: traits.is_top_k)
"""Ops that keep the largest elements along one dimension; `@target` for custom calls."""
_APPROXIMATE = frozenset(("@ApproxTopK", "@PartialReduce"))


def _name(op: Op) -> str:
    return f"@{string_value(op.attrs['call_target_name'])}" if op.name == "stablehlo.custom_call" else op.name


def searched_dims(op: Op) -> tuple[int, ...]:
    """The dimensions along which an op keeps the largest elements; all if it does not say which; none for other ops."""
    name, rank = _name(op), op.operands[0].type.rank if op.operands else 0
    if name not in TOP_K or not rank:
        return ()
    if name not in _APPROXIMATE:
        return (rank - 1,)
    config = op.attrs.get(_BACKEND)
    given = config[_DIMENSION] if isinstance(config, ir.DictAttr) and _DIMENSION in config else None
    dim = given.value if isinstance(given, ir.IntegerAttr) else rank
    return (dim,) if 0 <= dim < rank else tuple(range(rank))


def batch_dims(op: Op) -> tuple[int, ...]:
    """The batch dimensions in all tensors of an op; none if it declares none or a wrong number."""
    if searched := searched_dims(op):
        return tuple(dim for dim in range(op.operands[0].type.rank) if dim not in searched)
    attributes = op.attrs.get(_ATTRIBUTES) if op.name == "stablehlo.custom_call" else None
    if not isinstance(attributes, ir.DictAttr) or _COUNT not in attributes:
        return ()
    count = attributes[_COUNT]
    rank = int(string_value(count)) if isinstance(count, ir.StringAttr) and string_value(count).isdecimal() else 0
    values = (*op.operands, *op.results)
    if not all(value.type.is_ranked_tensor and value.type.is_static for value in values):
        return ()
    batches = {(value.type.shape or ())[:rank] for value in values}
    return tuple(range(rank)) if len(batches) == 1 and len(next(iter(batches))) == rank else ()


def split_batch(op: Op, dims: Collection[int], meshes: ModuleMeshes) -> None:
    """Reshard around an op so that its batch dimensions have equal axes in all tensors, and other dimensions none.

    Scalars are left alone.
    """
    values = (*op.operands, *op.results)
    shardings = [get_sharding(value) for value in values]
    batches = [_batch_of(sharding, dims, sharding.rank) for sharding in shardings if sharding and sharding.dims]
    common = most_split([*batches], meshes)
    assert common is not None
    targets = [_batch_of(common, dims, value.type.rank) for value in values]
    same = [not target.rank or is_equivalent(target, sharding) for target, sharding in zip(targets, shardings)]
    reshard_around(op, [None if found else target for target, found in zip(targets, same)])
    builder = RuleBuilder([value.type.shape for value in op.operands], [value.type.shape for value in op.results])
    for dim in dims:
        builder.factor((values[0].type.shape or ())[dim], builder.everywhere(dim))
    op.set_attr(RULE, builder.finish())


def _batch_of(sharding: TensorSharding, batch: Collection[int], rank: int) -> TensorSharding:
    """A sharding of only the batch dimensions, for a tensor of another rank."""
    dims = [DimSharding(sharding.dim_axes[dim] if dim in batch else ()) for dim in range(rank)]
    return TensorSharding.fully_replicated(sharding.mesh, rank).with_dims(dims)
