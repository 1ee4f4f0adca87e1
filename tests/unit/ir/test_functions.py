from __future__ import annotations

import pytest
from jaxlib.mlir import ir

from pyshardy.core.notation import parse_sharding
from pyshardy.errors import InvalidModuleError
from pyshardy.ir.functions import (
    arg_attrs,
    arg_sharding,
    calls,
    function_of_argument,
    functions,
    is_declaration,
    main_function,
    result_attrs,
    result_count,
    result_sharding,
    return_op,
    set_arg_sharding,
    set_arg_shardings,
    set_result_sharding,
    set_result_shardings,
    signature,
)
from pyshardy.ir.nodes import Op

from .reading import args, find, function, names, read

X = parse_sharding('<@m, [{"x"}]>')
Y = parse_sharding('<@m, [{"y"}]>')
SHARDED = """sdy.mesh @m = <["x"=2, "y"=2]>
func.func @f(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>, my.note}, %b: i32)
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"y"}]>}, i32 {my.note}) {
  return %a, %b : tensor<8xf32>, i32
}
"""
BARE = "func.func @f(%a: tensor<8xf32>, %b: i32) -> (i32, tensor<8xf32>) { return %b, %a : i32, tensor<8xf32> }"
DECLARATION = "func.func private @f(tensor<8xf32>, i32) -> (i32 {my.note})"
CALLS = """func.func private @g(%a: i32) -> i32 { return %a : i32 }
func.func private @h(%a: i32) -> i32 { return %a : i32 }
func.func @f(%a: i32, %c: tensor<i32>) -> i32 {
  %0 = func.call @g(%a) : (i32) -> i32
  %1 = "stablehlo.case"(%c) ({
    %2 = func.call @h(%0) : (i32) -> i32
    %3 = stablehlo.constant dense<1> : tensor<i32>
    stablehlo.return %3 : tensor<i32>
  }) : (tensor<i32>) -> tensor<i32>
  %4 = func.call @g(%0) : (i32) -> i32
  return %4 : i32
}"""


def only_function(text: str) -> Op:
    return find(read(text), "func.func")


def test_functions_at_the_top_in_order() -> None:
    root = read("func.func @b() { return } module { func.func @c() { return } } func.func private @a()")
    assert names(list(functions(root))) == ["b", "a"]


def test_declarations() -> None:
    assert is_declaration(only_function(DECLARATION))
    assert not is_declaration(only_function(BARE))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("func.func @f() { return }", "f"),
        ("func.func private @f()", "f"),
        ("func.func @f() { return } func.func @main() { return }", "main"),
        ("func.func @main() { return } func.func @f() { return }", "main"),
        ("func.func private @main() { return } func.func @f() { return }", "main"),
        ("func.func @f() { return } func.func nested @g() { return } func.func private @h() { return }", "f"),
    ],
)
def test_the_main_function_is_the_only_one_or_named_so(text: str, name: str) -> None:
    assert main_function(read(text)).attrs["sym_name"] == name


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("", "a module without functions"),
        ("func.func @f() { return } func.func @g() { return }", "the functions @f, @g"),
    ],
)
def test_without_a_main_function(text: str, got: str) -> None:
    with pytest.raises(InvalidModuleError) as caught:
        main_function(read(text))
    assert str(caught.value) == (
        f"looking for the main function: got {got}, needed a function named @main, or exactly one that is public"
    )


def test_calls_in_program_order_with_those_in_regions() -> None:
    root = read(CALLS)
    assert [call.attrs["callee"] for call in calls(function(root, "f"))] == ["g", "h", "g"]
    assert len(list(calls(root))) == 3
    assert list(calls(function(root, "g"))) == []


def test_the_return() -> None:
    assert return_op(only_function(BARE)).name == "func.return"


def test_the_return_is_the_last_of_several() -> None:
    root = only_function("""func.func @f(%a: i32, %b: i32, %c: i1) -> i32 {
      cf.cond_br %c, ^bb1, ^bb2
    ^bb1:
      return %a : i32
    ^bb2:
      return %b : i32
    ^bb3:
      cf.br ^bb1
    }""")
    assert return_op(root).operands == (args(root)[1],)


def test_a_function_that_never_returns() -> None:
    root = only_function("func.func @f() {\n  cf.br ^bb1\n^bb1:\n  cf.br ^bb1\n}")
    assert return_op(root) is root.region.blocks[1].terminator


def test_the_signature_is_that_of_the_body() -> None:
    inputs, results = signature(only_function(BARE))
    assert [str(type) for type in inputs] == ["tensor<8xf32>", "i32"]
    assert [str(type) for type in results] == ["i32", "tensor<8xf32>"]


def test_attributes_of_arguments_and_results() -> None:
    root = only_function(SHARDED)
    assert list(arg_attrs(root, 0)) == ["my.note", "sdy.sharding"]
    assert arg_attrs(root, 1) == {}
    assert list(result_attrs(root, 0)) == ["sdy.sharding"]
    assert isinstance(result_attrs(root, 1)["my.note"], ir.UnitAttr)


def test_shardings_of_arguments_and_results() -> None:
    root = only_function(SHARDED)
    assert [arg_sharding(root, index) for index in range(2)] == [X, None]
    assert [result_sharding(root, index) for index in range(2)] == [Y, None]


def test_a_function_without_such_attributes() -> None:
    root = only_function(BARE)
    assert (arg_attrs(root, 1), result_attrs(root, 1)) == ({}, {})
    assert (arg_sharding(root, 0), result_sharding(root, 1)) == (None, None)


def test_setting_shardings_where_there_are_none() -> None:
    root = only_function(BARE)
    set_arg_sharding(root, 0, X)
    set_result_sharding(root, 1, Y)
    assert root.attrs["arg_attrs"] == ({"sdy.sharding": X}, {})
    assert root.attrs["res_attrs"] == ({}, {"sdy.sharding": Y})


def test_setting_and_removing_shardings_leaves_other_attributes() -> None:
    root = only_function(SHARDED)
    set_arg_sharding(root, 0, Y)
    assert arg_sharding(root, 0) is Y
    set_arg_sharding(root, 0, None)
    set_result_sharding(root, 0, None)
    assert list(arg_attrs(root, 0)) == ["my.note"]
    assert (result_attrs(root, 0), list(result_attrs(root, 1))) == ({}, ["my.note"])


def test_setting_several_shardings_at_once_leaves_the_others() -> None:
    bare = only_function(BARE)
    set_arg_shardings(bare, {0: X, 1: Y})
    set_result_shardings(bare, {1: X})
    assert [arg_sharding(bare, index) for index in (0, 1)] == [X, Y]
    assert [result_sharding(bare, index) for index in (0, 1)] == [None, X]
    set_arg_shardings(bare, {1: None})
    assert [arg_sharding(bare, index) for index in (0, 1)] == [X, None]


def test_setting_no_shardings_keeps_the_attributes() -> None:
    function = only_function(SHARDED)
    before = function.attrs
    set_arg_shardings(function, {})
    set_result_shardings(function, {0: Y})
    assert function.attrs is before


def test_removing_what_is_not_there() -> None:
    root = only_function(BARE)
    set_arg_sharding(root, 0, None)
    set_result_sharding(root, 0, None)
    assert "arg_attrs" not in root.attrs
    assert "res_attrs" not in root.attrs
    sharded = only_function(SHARDED)
    set_arg_sharding(sharded, 1, None)
    assert arg_sharding(sharded, 0) is X


@pytest.mark.parametrize(
    ("text", "count"), [(SHARDED, 2), (BARE, 2), (DECLARATION, 1), ("func.func @f() { return }", 0)]
)
def test_number_of_results(text: str, count: int) -> None:
    assert result_count(only_function(text)) == count


def test_the_function_of_an_argument() -> None:
    root = only_function("""func.func @f(%a: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.sine %a : tensor<8xf32>
      %1 = sdy.named_computation<"n">(%0) (%b: tensor<8xf32>) {
        sdy.return %b : tensor<8xf32>
      } : (tensor<8xf32>) -> tensor<8xf32>
      cf.br ^bb1(%1 : tensor<8xf32>)
    ^bb1(%c: tensor<8xf32>):
      return %c : tensor<8xf32>
    }""")
    first, second = root.region.blocks
    assert function_of_argument(first.args[0]) is root
    assert function_of_argument(second.args[0]) is None
    assert function_of_argument(find(root, "stablehlo.sine").result) is None
    assert function_of_argument(find(root, "sdy.named_computation").region.block.args[0]) is None


def test_the_only_function_that_is_not_private_is_the_main_one() -> None:
    root = read("func.func private @f() { return }\nfunc.func @step() { return }")
    assert main_function(root).attrs["sym_name"] == "step"
