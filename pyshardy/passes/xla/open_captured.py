"""`pyshardy-open-captured`: lets values that a loop captures be sharded further inside the loop."""

from __future__ import annotations

from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.ir.captured import captured_by
from pyshardy.ir.functions import functions, is_declaration
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import get_sharding
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext

_WHILE = "stablehlo.while"


class OpenCaptured(Pass):
    """Give every loop a copy, with open dimensions, of each sharded value that it uses from outside."""

    name = "pyshardy-open-captured"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        for function in functions(op):
            if not is_declaration(function):
                for loop in ops_named(function, (_WHILE,), post_order=True):
                    for value in captured_by(loop):
                        _open(loop, value)


def _open(loop: Op, value: Value) -> None:
    sharding = get_sharding(value)
    if sharding is None or not sharding.rank:
        return
    opened = TensorSharding(sharding.mesh, [DimSharding((), True)] * sharding.rank)
    if sharding is opened:
        return
    attrs = {"sharding": opened}
    copy = Op("sdy.sharding_constraint", [value], [value.type], attrs, 0, loop.place).insert_before(loop)
    value.replace_uses(copy.result, lambda user, _: loop in user.ancestors())
