"""Programs as they would be with other code: an op on the shards of each device, micro-batches of every n-th row."""

from __future__ import annotations

from collections.abc import Sequence

from pyshardy.core.boxes import local_shape
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.functions import RULE, SHARDING
from pyshardy.ir.nodes import Op, Value
from pyshardy.transforms.builder import Builder

RESHAPE = "stablehlo.reshape"


def run_on_shards(op: Op, shardings: Sequence[TensorSharding], mesh: Mesh, attrs: AttrTable) -> None:
    """Put an op into a manual computation, as `jax.shard_map` does: every device runs it on its shards.

    Args:
        op: The op.
        shardings: The shardings of its operands, then of its results, by whole axes that divide the dimensions.
        mesh: Their mesh.
        attrs: The attributes and types of the module.
    """
    count = len(op.operands)
    axes = [axis.name for sharding in shardings for dim in sharding.dim_axes for axis in dim]
    builder = Builder(attrs, op, op.place)
    computation = builder.op(
        "sdy.manual_computation",
        op.operands,
        [result.type for result in op.results],
        {
            "in_shardings": tuple(shardings[:count]),
            "out_shardings": tuple(shardings[count:]),
            "manual_axes": tuple(name for name, _ in mesh.axes if name in axes),
        },
        region_count=1,
    )
    block = computation.region.add_block()

    def local(value: Value, place: int) -> tuple[int, ...]:
        return local_shape(shardings[place], mesh, value.type.shape or ())

    args = [
        block.add_arg(builder.like(local(value, place), value.type), op.place)
        for place, value in enumerate(op.operands)
    ]
    inner = Builder(attrs, block, op.place)
    made = op.clone()
    for place, arg in enumerate(args):
        made.set_operand(place, arg)
    inner.put(made)
    for place, result in enumerate(made.results):
        result.set_type(inner.like(local(result, count + place), result.type))
    for name in (RULE, SHARDING):
        made.remove_attr(name)
    inner.op("sdy.return", made.results, [])
    for old, new in zip(op.results, computation.results):
        old.replace_uses(new)
    op.erase()


def takes_micro_batches(op: Op) -> bool:
    """Whether a reshape divides its first dimension in two, so that each part is a stretch of rows."""
    if op.name != RESHAPE or not op.result.type.is_static or not op.operands[0].type.is_static:
        return False
    before, after = op.operands[0].type.shape or (), op.result.type.shape or ()
    return len(after) == len(before) + 1 and 1 not in after[:2] and before[1:] == after[2:]


def stride_micro_batches(op: Op, attrs: AttrTable) -> None:
    """Let each micro-batch of a reshape have every n-th row instead of a stretch of rows.

    Args:
        op: A reshape for which `takes_micro_batches` holds.
        attrs: The attributes and types of the module.
    """
    builder = Builder(attrs, op, op.place)
    count, size, *rest = op.result.type.shape or ()
    divided = builder.reshape(op.operands[0], [size, count, *rest])
    order = [1, 0, *range(2, 2 + len(rest))]
    turned = builder.value("transpose", [divided], op.result.type, permutation=builder.array(order))
    op.result.replace_uses(turned)
    op.erase()
