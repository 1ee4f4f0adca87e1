"""`name-causes` of `sdy-insert-explicit-reshards`: a reshard says which op needs it."""

from __future__ import annotations

import pytest

import pyshardy
from pyshardy.ir.functions import main_function
from pyshardy.ir.locations import scope_of
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import walk
from pyshardy.passes.pipeline import run_pipeline
from support.reference import jaxlib_version

needs_newest = pytest.mark.skipif(jaxlib_version() < (0, 12), reason="older shardings are sums alone")
PRODUCT = """sdy.mesh @m = <["a"=2, "b"=2]>
func.func @main(%l: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {"b"}]>},
                %r: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}) {
  %given = sdy.reshard %r <@m, [{"b"}, {"a"}]> : tensor<8x8xf32> loc("f.py":1:1)
  %0 = stablehlo.dot %l, %given {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a"}, {}]>]>}
    : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("jit(f)/dot"("f.py":3:4))
  return %0 : tensor<8x8xf32>
}"""


def causes(options: str) -> list[tuple[str, str | None]]:
    """What every op that moves data says that it is for."""
    module = run_pipeline(Module.parse(PRODUCT), f"sdy-insert-explicit-reshards{{enable-full-version=true{options}}}")
    moving = ("sdy.reshard", "sdy.all_reduce")
    return [(op.name, op.need and str(op.need)) for op in walk(main_function(module.root)) if op.name in moving]


def test_new_reshards_say_what_they_are_for_and_old_ones_stay() -> None:
    assert causes(" name-causes=true") == [
        ("sdy.reshard", None),
        ("sdy.reshard", "reshard of operand 1 of stablehlo.dot"),
        ("sdy.all_reduce", "sum of result of stablehlo.dot"),
    ]


def test_the_scope_is_that_of_the_op() -> None:
    text = "sdy-insert-explicit-reshards{enable-full-version=true name-causes=true}"
    root = run_pipeline(Module.parse(PRODUCT), text).root
    (total,) = [op for op in walk(main_function(root)) if op.name == "sdy.all_reduce"]
    assert scope_of(total.location) == "jit(f)/dot"


def test_nobody_says_anything_unless_asked() -> None:
    assert [cause for _, cause in causes("")] == [None] * len(causes(""))


def reduction(op: str, type: str, initial: str) -> str:
    return f"""sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<8x4x{type}> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> tensor<4x{type}> {{
      %0 = stablehlo.constant dense<{initial}> : tensor<{type}>
      %1 = stablehlo.reduce(%a init: %0) applies stablehlo.{op} across dimensions = [0]
        : (tensor<8x4x{type}>, tensor<{type}>) -> tensor<4x{type}>
      return %1 : tensor<4x{type}>
    }}"""


def told(text: str) -> list[tuple[str, str | None]]:
    """The collectives of a program per device, with what they are for."""
    return [(row.kind, row.cause) for row in pyshardy.partition(pyshardy.load(text)).traffic.collectives]


@pytest.mark.parametrize(
    ("op", "type", "initial", "kind", "word"),
    [
        ("add", "f32", "0.0", "all_reduce", "sum"),
        ("maximum", "f32", "0xFF800000", "all_reduce", "max"),
        ("minimum", "f32", "0x7F800000", "all_reduce", "min"),
        ("multiply", "f32", "1.0", "all_reduce", "product"),
        ("and", "i1", "true", "all_reduce", "and"),
        ("or", "i1", "false", "all_reduce", "or"),
        ("xor", "i32", "0", "all_gather", "xor"),
    ],
)
def test_a_reduction_is_called_what_it_is(op: str, type: str, initial: str, kind: str, word: str) -> None:
    assert told(reduction(op, type, initial)) == [(kind, f"{word} of result of stablehlo.reduce")]


def test_a_reduction_by_any_other_body() -> None:
    text = """sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
                    %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<f32>, tensor<f32>) {
      %0 = stablehlo.constant dense<0.0> : tensor<f32>
      %1:2 = stablehlo.reduce(%a init: %0), (%b init: %0) across dimensions = [0]
        : (tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
        reducer(%c: tensor<f32>, %d: tensor<f32>) (%e: tensor<f32>, %f: tensor<f32>) {
          %2 = stablehlo.add %c, %d : tensor<f32>
          %3 = stablehlo.maximum %2, %f : tensor<f32>
          stablehlo.return %2, %3 : tensor<f32>, tensor<f32>
        }
      return %1#0, %1#1 : tensor<f32>, tensor<f32>
    }"""
    assert told(text) == [("all_gather", f"reduction of result {index} of stablehlo.reduce") for index in (0, 1)]


def test_what_scatters_multiply() -> None:
    text = """sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<8xf32>, %i: tensor<4x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                    %u: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
      %0 = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
        inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%old: tensor<f32>, %new: tensor<f32>):
        %1 = stablehlo.multiply %old, %new : tensor<f32>
        stablehlo.return %1 : tensor<f32>
      }) : (tensor<8xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }"""
    assert told(text) == [("all_reduce", "product of result of stablehlo.scatter")]


@pytest.mark.parametrize("word", ["sum", *(pytest.param(word, marks=needs_newest) for word in ("max", "min"))])
def test_an_input_that_is_partial(word: str) -> None:
    """Parts that come in are completed in the way that their sharding says."""
    kind = "" if word == "sum" else word
    text = f"""sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}], unreduced={kind}{{"x"}}>}})
        -> (tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}]>}}) {{
      %0 = sdy.reshard %a <@mesh, [{{}}]> : tensor<8xf32>
      return %0 : tensor<8xf32>
    }}"""
    assert told(text) == [("all_reduce", f"{word} of operand 0 of sdy.reshard")]
