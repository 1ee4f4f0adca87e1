"""Ops that need their neighbours, and dimensions that are not divisible: devices give what the whole program gives."""

from __future__ import annotations

import pytest

from pyshardy.ir.module import Module
from pyshardy.passes.pipeline import run_pipeline
from support.interpreter import disagreement
from support.reference import jaxlib_version

pytestmark = pytest.mark.skipif(
    jaxlib_version() < (0, 12), reason="before 0.12, the interpreter needs as many threads as there are devices"
)
_INSERT = "sdy-insert-explicit-reshards{enable-full-version=true mark-partial-result-with-unreduced-axes=true}"
_REST = (
    "sdy-reshard-to-collectives,sdy-optimize-collectives,canonicalize{enable-patterns=sdy-collective},"
    "sdy-pad-for-divisibility,sdy-convert-global-to-local{enable-rgv3=false},sdy-drop-sharding-and-mesh"
)
_HALO = f"{_INSERT},sdy-resolve-permutation-factors,{_REST}"
_NO_HALO = f"{_INSERT},sdy-resolve-permutation-factors{{enable-halo-exchange=false}},{_REST}"


def _s(sharding: str) -> str:
    return f"{{sdy.sharding = #sdy.sharding_per_value<[<@m, {sharding}>]>}}"


def _program(args: str, lines: str, result: str, order: str = "") -> str:
    return (
        f'sdy.mesh @m = <["x"=2, "y"=2]{order}>\n'
        f"func.func @main({args}) -> tensor<{result}> {{\n{lines}\n  return %r : tensor<{result}>\n}}"
    )


def _sine(value: str, type: str, sharding: str) -> str:
    """A value whose padding is not zero once it is an exponential."""
    return f"  %e = stablehlo.exponential {value} {_s(sharding)} : tensor<{type}>\n"


def _slice(bounds: str, type: str, result: str, sharding: str, order: str = "") -> str:
    line = f"  %r = stablehlo.slice %e {bounds} {_s(sharding)} : (tensor<{type}>) -> tensor<{result}>"
    return _program(f"%a: tensor<{type}>", _sine("%a", type, sharding) + line, result, order)


def _pad(low: str, high: str, interior: str, type: str, result: str, sharding: str, more: str = "") -> str:
    line = (
        "  %c = stablehlo.constant dense<0.0> : tensor<f32>\n"
        f"  %p = stablehlo.pad %e, %c, low = [{low}], high = [{high}], interior = [{interior}] {_s(sharding)} : "
        f"(tensor<{type}>, tensor<f32>) -> tensor<{result}>\n"
    )
    last = more or f"  %r = stablehlo.negate %p {_s(sharding)} : tensor<{result}>"
    out = "f32" if more else result
    return _program(f"%a: tensor<{type}>", _sine("%a", type, sharding) + line + last, out)


def _sum(type: str, dims: str) -> str:
    return (
        f"  %r = stablehlo.reduce(%p init: %c) applies stablehlo.add across dimensions = [{dims}] "
        f"{_s('[]')} : (tensor<{type}>, tensor<f32>) -> tensor<f32>"
    )


def _scatter(combiner: str) -> str:
    return _program(
        "%a: tensor<7x3xf32>, %i: tensor<5x1xi32>, %u: tensor<5x3xf32>",
        f"""  %v = stablehlo.exponential %u {_s('[{"x", "y"}, {}]')} : tensor<5x3xf32>
  %r = "stablehlo.scatter"(%a, %i, %v) <{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.{combiner} %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }}) {_s("[{}, {}]")} : (tensor<7x3xf32>, tensor<5x1xi32>, tensor<5x3xf32>) -> tensor<7x3xf32>""",
        "7x3xf32",
    )


_ALL = '[{"x", "y"}]'
_TWO = '[{"x"}, {"y"}]'
PROGRAMS = {
    "strided slice": _slice("[1:16:3]", "16xf32", "5xf32", _ALL),
    "strided slice of whole shards": _slice("[0:16:2]", "16xf32", "8xf32", _ALL),
    "strided slice of two dimensions": _slice("[0:9:2, 1:8:3]", "9x8xf32", "5x3xf32", _TWO),
    "strided slice beside a padded one": _slice("[0:7, 0:10:3]", "7x10xf32", "7x4xf32", '[{"x", "y"}, {}]'),
    "slice on other devices": _slice("[3:14]", "16xf32", "11xf32", _ALL, ", device_ids=[3, 1, 0, 2]"),
    "slice with empty shards": _slice("[5:7]", "16xf32", "2xf32", _ALL),
    "pad": _pad("3", "2", "1", "9xf32", "22xf32", _ALL),
    "pad that cuts": _pad("-2", "-1", "0", "13xf32", "10xf32", _ALL),
    "pad that moves nothing beside one that does": _pad("3, 1", "1, 1", "0, 0", "16x10xf32", "20x12xf32", _TWO),
    "pad behind padding": _pad("1", "1", "0", "7xf32", "9xf32", '[{"x"}]'),
    "sum of what is cut": _pad("0, 0", "-1, 0", "0, 0", "8x4xf32", "7x4xf32", '[{"x"}, {}]', _sum("7x4xf32", "0, 1")),
    "sum of a pad": _pad("0, 0", "1, 0", "0, 0", "8x5xf32", "9x5xf32", _TWO, _sum("9x5xf32", "0, 1")),
    "scatter multiply": _scatter("multiply"),
    "scatter add": _scatter("add"),
    "scatter maximum": _scatter("maximum"),
    "roll": _program(
        "%a: tensor<8xf32>",
        _sine("%a", "8xf32", _ALL)
        + f"""  %0 = stablehlo.slice %e [4:8] {_s(_ALL)} : (tensor<8xf32>) -> tensor<4xf32>
  %1 = stablehlo.slice %e [0:4] {_s(_ALL)} : (tensor<8xf32>) -> tensor<4xf32>
  %r = stablehlo.concatenate %0, %1, dim = 0 {_s(_ALL)} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>""",
        "8xf32",
    ),
    "reverse": _program(
        "%a: tensor<9x7xf32>",
        _sine("%a", "9x7xf32", _TWO) + f"  %r = stablehlo.reverse %e, dims = [0, 1] {_s(_TWO)} : tensor<9x7xf32>",
        "9x7xf32",
    ),
    "reverse beside a part of the same axis": _program(
        "%a: tensor<9x7xf32>",
        _sine("%a", "9x7xf32", '[{"q":(1)2}, {"q":(2)2}]').replace("%e =", "%e =")
        + f"""  %r = stablehlo.reverse %e, dims = [0] {_s('[{"q":(1)2}, {"q":(2)2}]')} : tensor<9x7xf32>""",
        "9x7xf32",
    ).replace('"x"=2, "y"=2', '"q"=4'),
    "split": _program(
        "%a: tensor<14xf32>",
        _sine("%a", "14xf32", _ALL) + f"  %r = stablehlo.reshape %e {_s(_TWO)} : (tensor<14xf32>) -> tensor<2x7xf32>",
        "2x7xf32",
    ),
    "dynamic slice of whole dimensions": _program(
        "%a: tensor<7x5xf32>, %i: tensor<i32>",
        _sine("%a", "7x5xf32", '[{"x", "y"}, {}]')
        + f"""  %r = stablehlo.dynamic_slice %e, %i, %i, sizes = [7, 2] {_s('[{"x", "y"}, {}]')} :
    (tensor<7x5xf32>, tensor<i32>, tensor<i32>) -> tensor<7x2xf32>""",
        "7x2xf32",
    ),
    "dynamic update of one element": _program(
        "%a: tensor<7xf32>, %u: tensor<1xf32>, %i: tensor<i32>",
        _sine("%a", "7xf32", _ALL)
        + f"""  %ten = stablehlo.constant dense<10> : tensor<i32>
  %j = stablehlo.add %i, %ten : tensor<i32>
  %r = stablehlo.dynamic_update_slice %e, %u, %j {_s(_ALL)} : (tensor<7xf32>, tensor<1xf32>, tensor<i32>) -> tensor<7xf32>""",
        "7xf32",
    ),
    "dynamic update of one element at a place of a type that does not count them": _program(
        "%a: tensor<130xf32>, %u: tensor<1xf32>, %i: tensor<i8>",
        _sine("%a", "130xf32", _ALL)
        + f"""  %n = stablehlo.constant dense<100> : tensor<i8>
  %j = stablehlo.add %i, %n : tensor<i8>
  %r = stablehlo.dynamic_update_slice %e, %u, %j {_s(_ALL)} : (tensor<130xf32>, tensor<1xf32>, tensor<i8>) -> tensor<130xf32>""",
        "130xf32",
    ),
    "gather of windows": _program(
        "%a: tensor<6x7xf32>, %i: tensor<3x1xi32>",
        _sine("%a", "6x7xf32", '[{}, {"x", "y"}]')
        + f"""  %r = "stablehlo.gather"(%e, %i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 7>}}>
    {_s('[{}, {"x", "y"}]')} : (tensor<6x7xf32>, tensor<3x1xi32>) -> tensor<3x7xf32>""",
        "3x7xf32",
    ),
    "convolution in groups": _program(
        "%a: tensor<2x5x6xf32>, %k: tensor<3x2x9xf32>",
        f"""  %e = stablehlo.exponential %a {_s('[{}, {}, {"x", "y"}]')} : tensor<2x5x6xf32>
  %r = stablehlo.convolution(%e, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{}}
    {{batch_group_count = 1 : i64, feature_group_count = 3 : i64, {_s('[{}, {}, {"x", "y"}]')[1:-1]}}} :
    (tensor<2x5x6xf32>, tensor<3x2x9xf32>) -> tensor<2x3x9xf32>""",
        "2x3x9xf32",
    ),
    "convolution summed over padding": _program(
        "%a: tensor<3x5x7xf32>, %k: tensor<3x7x4xf32>",
        f"""  %e = stablehlo.exponential %a {_s('[{"x"}, {}, {"y"}]')} : tensor<3x5x7xf32>
  %f = stablehlo.exponential %k {_s('[{}, {"y"}, {}]')} : tensor<3x7x4xf32>
  %r = stablehlo.convolution(%e, %f) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{pad = [[1, 1]]}}
    {{batch_group_count = 1 : i64, feature_group_count = 1 : i64, {_s('[{"x"}, {}, {}]')[1:-1]}}} :
    (tensor<3x5x7xf32>, tensor<3x7x4xf32>) -> tensor<3x5x4xf32>""",
        "3x5x4xf32",
    ),
}


@pytest.mark.parametrize("pipeline", [_HALO, _NO_HALO], ids=["halo", "no halo"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_devices_give_what_the_whole_program_gives(name: str, pipeline: str) -> None:
    source = Module.parse(PROGRAMS[name])
    assert not disagreement(source, run_pipeline(source, pipeline), seed=len(name))


def test_padding_would_be_seen() -> None:
    """Without the masks, what is in the padding gets into the result."""
    source = Module.parse(PROGRAMS["scatter multiply"])
    text = run_pipeline(source, _HALO).text()
    assert "stablehlo.select" in text
    wrong = Module.parse(text.replace("compare  LT", "compare  GE").replace("compare LT", "compare GE"))
    assert disagreement(source, wrong)
