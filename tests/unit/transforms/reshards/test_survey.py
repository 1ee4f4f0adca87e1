from __future__ import annotations

from pyshardy.core.notation import parse_sharding
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import walk
from pyshardy.transforms.reshards.survey import distinct_shardings

TEXT = """sdy.mesh @m = <["x"=2, "y"=2]>
func.func @f(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}p1]>}, %b: tensor<8xf32>,
             %c: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}p1]>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}p2]>}) {
  %0 = sdy.manual_computation(%a) in_shardings=[<@m, [{"x"}p3]>] out_shardings=[<@m, [{"x"}p4]>] manual_axes={}
      (%i: tensor<8xf32>) {
    %1 = sdy.reshard %i <@m, [{"x"}p5]> : tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %2:2 = stablehlo.custom_call @f(%0) {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}p6]>, <@m, [{"x"}p1]>]>}
    : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %3 = stablehlo.sine %2#0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}p6]>]>} : tensor<8xf32>
  return %3 : tensor<8xf32>
}
func.func @bare(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }
func.func private @declared(tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"y"}]>})
"""


def test_every_sharding_of_a_function_is_found_once() -> None:
    functions = {op.attrs["sym_name"]: op for op in walk(Module.parse(TEXT).copy_root()) if op.name == "func.func"}
    found = distinct_shardings(functions["f"])
    assert len(found) == len(set(found))
    assert set(found) == {parse_sharding(f'<@m, [{{"x"}}p{number}]>') for number in range(1, 7)}
    assert distinct_shardings(functions["bare"]) == []
    assert distinct_shardings(functions["declared"]) == [parse_sharding('<@m, [{"y"}]>')]
