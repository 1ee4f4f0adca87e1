"""What resharding around an op sends is what its collectives send."""

from __future__ import annotations

from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.reshard.around_cost import cost_around, reshard_cost
from pyshardy.reshard.plan import OpInput
from pyshardy.rules.notation import parse_rule

_MESHES = {"m": Mesh([("a", 8)])}
_JOINED = parse_rule("<([i, j], [i, j])->([i, j]) {i=16, j=32} need_replication={j}>")
_COLUMNS, _WHOLE = parse_sharding('<@m, [{}, {"a"}]>'), parse_sharding("<@m, [{}, {}]>")


def test_nothing_is_sent_to_get_what_is_there() -> None:
    assert reshard_cost(_COLUMNS, _COLUMNS, (16, 16), _MESHES) == 0
    assert reshard_cost(_COLUMNS, None, (16, 16), _MESHES) == 0
    assert reshard_cost(None, _COLUMNS, (16, 16), _MESHES) == 0


def test_operands_go_to_another_dimension_and_the_result_comes_back() -> None:
    shapes = ((16, 16), (16, 16), (16, 32))
    op = OpInput("stablehlo.concatenate", _JOINED, shapes, (_COLUMNS,) * 3, True)
    per_tensor = [16 * 16 // 8 * 7 // 8, 16 * 16 // 8 * 7 // 8, 16 * 32 // 8 * 7 // 8]
    assert cost_around(op, _MESHES) == sum(per_tensor)


def test_an_op_that_is_left_alone_has_no_cost() -> None:
    op = OpInput("stablehlo.concatenate", _JOINED, ((16, 16), (16, 16), (16, 32)), (_WHOLE,) * 3, True)
    assert cost_around(op, _MESHES) is None
