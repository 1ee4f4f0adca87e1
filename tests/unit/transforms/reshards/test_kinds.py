"""Ops of one kind share all that passes decide by; what differs in any of that is of another kind."""

from __future__ import annotations

from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.shardings import get_sharding, get_shardings
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.properties import ELEMENTWISE
from pyshardy.rules.table import RULES
from pyshardy.transforms.reshards.kinds import kind_of
from pyshardy.transforms.reshards.op_rules import lacks_rule, rule_with_dynamic_sizes

TEXT = """sdy.mesh @m = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %b: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.sine %a {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : tensor<8xf32>
  %1 = stablehlo.sine %0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : tensor<8xf32>
  %other_name = stablehlo.cosine %1 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : tensor<8xf32>
  %other_operand = stablehlo.sine %b {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : tensor<8xf32>
  %other_sharding = stablehlo.sine %1 : tensor<8xf32>
  %other_attribute = stablehlo.sine %1 {note = 1 : i64, sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>}
    : tensor<8xf32>
  %moved = sdy.reshard %1 <@m, [{}]> : tensor<8xf32>
  %other_type = stablehlo.convert %moved : (tensor<8xf32>) -> tensor<8xf64>
  %same_type = stablehlo.convert %moved : (tensor<8xf32>) -> tensor<8xf32>
  %joined = stablehlo.concatenate %1, dim = 0 : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
"""


def ops() -> list[Op]:
    return [op for op in walk(Module.parse(TEXT).copy_root()) if op.operands and op.results]


def test_equal_ops_are_of_one_kind_and_all_others_are_not() -> None:
    first, same, *others, joined = map(kind_of, ops())
    assert first == same and first is not None
    assert len({first, *others}) == 1 + len(others)
    assert joined is None  # its rule depends on what it joins


def test_other_types_count_where_they_are_given() -> None:
    first, same, *_ = ops()
    wider = next(op for op in ops() if op.name == "stablehlo.convert").results[0].type
    assert kind_of(first, {first.operands[0]: wider}) != kind_of(same, {first.operands[0]: wider})
    assert kind_of(first, {same.operands[0]: wider}) == kind_of(same)


def test_all_shardings_are_those_of_each() -> None:
    for op in ops():
        values = [*op.operands, *op.results]
        assert get_shardings(values) == [get_sharding(value) for value in values]
    assert len({str(found) for op in ops() for found in get_shardings(op.operands)}) == 3


def test_elementwise_ops_with_a_builder_for_rules_have_one() -> None:
    names = sorted(name for name in (*ELEMENTWISE, "stablehlo.bitcast_convert") if name in RULES)
    assert "stablehlo.add" in names and "chlo.erf" not in names and lacks_rule("chlo.erf")
    assert not any(map(lacks_rule, names))
    for name in names:
        for shape in (), (4,), (4, -1):
            count = 3 if name in ("stablehlo.clamp", "stablehlo.select") else 1
            assert rule_with_dynamic_sizes(OpSpec(name, [shape] * count, [shape])) is not None, name
