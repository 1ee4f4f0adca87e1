from __future__ import annotations

import pytest
from jaxlib.mlir import ir

from pyshardy.core.axes import AxisRef
from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.errors import InvalidModuleError
from pyshardy.ir.locations import source_position
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import walk
from pyshardy.rules.notation import parse_rule

from .reading import find, function, main, read

MESH = 'sdy.mesh @m = <["x"=2, "y"=2]>'


def test_structure() -> None:
    root = read(f"""{MESH}
      func.func @main(%a: tensor<8xf32>, %n: tensor<i32>) -> tensor<8xf32> {{
        %0 = "stablehlo.case"(%n) ({{
          stablehlo.return %a : tensor<8xf32>
        }}, {{
          %1 = stablehlo.sine %a : tensor<8xf32>
          stablehlo.return %1 : tensor<8xf32>
        }}) : (tensor<i32>) -> tensor<8xf32>
        return %0 : tensor<8xf32>
      }}""")
    assert [op.name for op in walk(root)] == [
        "builtin.module", "sdy.mesh", "func.func", "stablehlo.case", "stablehlo.return", "stablehlo.sine",
        "stablehlo.return", "func.return",
    ]  # fmt: skip
    case = find(root, "stablehlo.case")
    arg, selector = find(root, "func.func").region.block.args
    assert case.operands == (selector,)
    assert find(root, "stablehlo.sine").operands == (arg,)
    assert find(root, "func.return").operands == case.results
    assert [region.block.terminator.operands for region in case.regions] == [
        (arg,),
        find(root, "stablehlo.sine").results,
    ]
    assert arg.type is case.result.type


def test_attributes_of_the_dialect_become_values() -> None:
    root = read(
        """
      sdy.mesh @m = <["x"=2, "y"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]> {sym_visibility = "private"}
      func.func private @f(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x", ?}]>, other.name = 1 : i32})
          -> (tensor<8xf32>, tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{}]>})
          attributes {sdy.original_func_name = "g"} {
        %0 = stablehlo.sine %a {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"y":(2)2}]>]>,
          sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}>} : tensor<8xf32>
        %1 = sdy.sharding_constraint %0 <@m, [{"x"}p1]> : tensor<8xf32>
        sdy.sharding_group %1 group_id=-3 : tensor<8xf32>
        %2 = sdy.propagation_barrier %1 allowed_direction=BACKWARD : tensor<8xf32>
        %3 = func.call @f(%2) {note = "kept"} : (tensor<8xf32>) -> tensor<8xf32>
        return %3, %3 : tensor<8xf32>, tensor<8xf32>
      }""".replace("func.call @f(%2)", "func.call @h(%2)")
        + "func.func private @h(tensor<8xf32>) -> tensor<8xf32>"
    )
    mesh = find(root, "sdy.mesh").attrs
    assert mesh == {
        "mesh": Mesh([("x", 2), ("y", 4)], range(7, -1, -1)),
        "sym_name": "m",
        "sym_visibility": "private",
    }
    f = function(root, "f").attrs
    assert f["arg_attrs"][0]["sdy.sharding"] is parse_sharding('<@m, [{"x", ?}]>')
    assert isinstance(f["arg_attrs"][0]["other.name"], ir.IntegerAttr)
    assert f["res_attrs"] == ({}, {"sdy.sharding": parse_sharding("<@m, [{}]>")})
    assert f["sdy.original_func_name"] == "g"
    sine = find(root, "stablehlo.sine").attrs
    assert sine["sdy.sharding"] == (parse_sharding('<@m, [{"y":(2)2}]>'),)
    assert sine["sdy.sharding_rule"] == parse_rule("<([i])->([i]) {i=8}>")
    assert find(root, "sdy.sharding_constraint").attrs["sharding"] is parse_sharding('<@m, [{"x"}p1]>')
    assert find(root, "sdy.sharding_group").attrs["group_id"] == -3
    assert find(root, "sdy.propagation_barrier").attrs["allowed_direction"] == 2
    call = find(root, "func.call").attrs
    assert call["callee"] == "h"
    assert isinstance(call["note"], ir.StringAttr)


def test_computations_and_collectives() -> None:
    function = main(
        """
  %0 = sdy.manual_computation(%a) in_shardings=[<@m, [{"x"}]>] out_shardings=[<@m, [{"x"}]>]
      manual_axes={"x", "y"} (%c: tensor<4xf32>) { sdy.return %c : tensor<4xf32> } : (tensor<8xf32>) -> tensor<8xf32>
  %1 = sdy.named_computation<"foo">(%0) out_shardings=[<@m, [{?}]>] (%c: tensor<8xf32>) {
    sdy.return %c : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %2 = sdy.reshard %1 <@m, [{"x", "y"}]> : tensor<8xf32>
  %3 = sdy.all_gather [{"y"}] %2 out_sharding=<@m, [{"x"}]> : tensor<8xf32>
  %4 = sdy.all_reduce {"y"} %3 out_sharding=<@m, [{"x"}]> : tensor<8xf32>""",
        before=MESH,
    )
    x, y = AxisRef("x"), AxisRef("y")
    manual = find(function, "sdy.manual_computation").attrs
    assert manual["manual_axes"] == ("x", "y")
    assert manual["in_shardings"] == manual["out_shardings"] == (parse_sharding('<@m, [{"x"}]>'),)
    named = find(function, "sdy.named_computation").attrs
    assert named == {"name": "foo", "out_shardings": (parse_sharding("<@m, [{?}]>"),)}
    assert find(function, "sdy.reshard").attrs["sharding"].dims[0].axes == (x, y)
    assert find(function, "sdy.all_gather").attrs["gathering_axes"] == ((y,),)
    reduce = find(function, "sdy.all_reduce").attrs
    assert reduce["reduction_axes"] == (y,)
    assert reduce["out_sharding"] is parse_sharding('<@m, [{"x"}]>')


def test_locations() -> None:
    root = read("func.func @main(%a: tensor<8xf32>) {\n  %0 = stablehlo.sine %a : tensor<8xf32>\n  return\n}")
    assert source_position(find(root, "stablehlo.sine").location) == ("-", 2, 8)
    assert source_position(find(root, "func.func").region.block.args[0].location) == ("-", 1, 17)


def test_places_are_kept_for_every_op_and_no_more() -> None:
    root = read("func.func @main(%a: tensor<8xf32>) { %0 = stablehlo.sine %a : tensor<8xf32> return }")
    source = root.source
    assert source is not None
    assert [op.number for op in walk(root)] == list(range(4))
    assert len(source.locations) == len(source.blocks) == len(source.places) == len(source.kinds) == 4
    assert (list(source.blocks), list(source.places)) == ([-1, 0, 1, 1], [0, 0, 0, 1])


def test_reading_leaves_the_module_alone() -> None:
    module = Module.parse("func.func @main() { return }")
    before = module.text()
    root = module.copy_root()
    find(root, "func.func").set_attr("sym_name", "other")
    assert module.text() == before
    assert module.copy_root() is not root


def test_blocks_may_come_before_those_of_their_operands() -> None:
    root = read("""func.func @main(%a: i32) -> i32 {
      cf.br ^bb2
    ^bb1:
      %y = arith.addi %x, %x : i32
      return %y : i32
    ^bb2:
      %x = arith.muli %a, %a : i32
      cf.br ^bb1
    }""")
    first, second, third = find(root, "func.func").region.blocks
    assert first.terminator.successors == (third,)
    assert third.terminator.successors == (second,)
    user, defining = find(root, "arith.addi"), find(root, "arith.muli")
    assert user.operands == (defining.result,) * 2
    assert list(defining.result.uses) == [(user, 1), (user, 0)]  # the head comes last; MLIR walks operand 0 first


def test_a_graph_may_have_cycles() -> None:
    root = read('%0 = "t.a"(%1) : (i32) -> i32\n%1 = "t.b"(%0) : (i32) -> i32', allow_unregistered=True)
    a, b = find(root, "t.a"), find(root, "t.b")
    assert (a.operands, b.operands) == ((b.result,), (a.result,))
    assert list(b.result.uses) == [(a, 0)]


def test_properties_of_unknown_ops_are_refused() -> None:
    text = '"t.before"() {a = "<{"} : () -> ()\n%0 = "t.op"() <{a = 1 : i32}> {b = 2 : i32} : () -> i32'
    with pytest.raises(InvalidModuleError) as caught:
        read(text, allow_unregistered=True)
    assert str(caught.value) == (
        "reading a module: got properties on 't.op', an op of an unknown dialect, "
        "needed only attributes: {...} instead of <{...}>\n  at -:2:6"
    )


def test_use_lists_are_those_of_mlir() -> None:
    function = main("  %0 = stablehlo.add %a, %a : tensor<8xf32>\n  %1 = stablehlo.subtract %b, %a : tensor<8xf32>")
    arg = function.region.block.args[0]
    assert [(op.name, index) for op, index in reversed(arg.uses)] == [
        ("stablehlo.subtract", 1),
        ("stablehlo.add", 1),
        ("stablehlo.add", 0),
    ]
