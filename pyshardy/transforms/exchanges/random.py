"""Random bits, which every device generates from the state where possible.

Source: docs/semantics/partitioner.md#random-bits
"""

from __future__ import annotations

from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import get_sharding, set_sharding
from pyshardy.transforms.exchanges.resolver import Resolver
from pyshardy.transforms.reshards.op_reshards import insert_after
from pyshardy.transforms.reshards.operand_shardings import make_reshard

_SEEDS = frozenset(("i32", "i64", "ui32", "ui64"))
"""Element types of a random state from which every device can derive its own."""


def resolve_random(op: Op, resolver: Resolver) -> bool:
    """`rng_bit_generator`: keep the result sharded if every device can derive its own state; otherwise replicate it."""
    sharding = get_sharding(op.results[1])
    is_own = resolver.options.rng_bit_generator_unsafe and op.results[0].type.element in _SEEDS
    if sharding is not None and not sharding.is_fully_replicated and not is_own:
        set_sharding(op.results[1], TensorSharding.fully_replicated(sharding.mesh, sharding.rank))
        insert_after(make_reshard(op.results[1], sharding), op, op.results[1])
    return True
