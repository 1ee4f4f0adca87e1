"""`sdy-remove-all-gather-reduce-scatter-for-cmv1`: removes collectives that matrix products do themselves.

Source: docs/semantics/reshards-and-collectives.md#products-that-communicate-by-themselves
"""

from __future__ import annotations

from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import get_sharding, set_sharding
from pyshardy.passes.base import Anchor, Pass
from pyshardy.rules.properties import PRODUCTS
from pyshardy.transforms.context import PassContext


class RemoveAllGatherReduceScatterForCmv1(Pass):
    """Remove the all-gathers before matrix products, or else the reduce-scatters after them.

    For targets that overlap this communication with the product; they derive it from the shardings.
    """

    name = "sdy-remove-all-gather-reduce-scatter-for-cmv1"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        marked = [found for inner in ops_named(op, PRODUCTS, post_order=True) for found in _fused_with(inner)]
        for inner in marked:
            inner.result.replace_uses(inner.operands[0])
            inner.erase()


def _fused_with(product: Op) -> list[Op]:
    """The collectives that a product does itself. The product gets the sharding after its reduce-scatter."""
    definitions = [value.defining_op for value in product.operands]
    gathers = [op for op in definitions if op is not None and op.name == "sdy.all_gather" and op.result.has_one_use()]
    if gathers:
        return gathers
    user = product.result.only_user()
    sharding = get_sharding(product.result)
    if user is None or user.name != "sdy.reduce_scatter" or (sharding is not None and sharding.unreduced):
        return []
    set_sharding(product.result, user.attrs["out_sharding"])
    return [user]
