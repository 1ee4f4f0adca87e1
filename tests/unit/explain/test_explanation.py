"""Explanations as text and as data."""

from __future__ import annotations

import json

import pyshardy
from pyshardy import PropagateOptions

HEAD = 'sdy.mesh @mesh = <["x"=2, "y"=2]>\n'
CHAIN = (
    HEAD
    + """
func.func public @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>} loc("a")) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %a : tensor<8x8xf32> loc("jit(f)/tanh"("model.py":1:1))
  %1 = stablehlo.negate %0 : tensor<8x8xf32> loc("jit(f)/neg"("model.py":2:1))
  %2 = stablehlo.cosine %1 : tensor<8x8xf32> loc("jit(f)/cos"("model.py":3:1))
  return %2 : tensor<8x8xf32>
}
"""
)


def test_the_text_of_a_chain() -> None:
    result = pyshardy.propagate(pyshardy.load(CHAIN))
    assert str(result.explain("result")).splitlines() == [
        '`result`, shape [8, 8]: [{"x"}, {}] on mesh <["x"=2, "y"=2]>',
        '  dimension 0 (size 8): "x", given to the input `a` on dimension 0, came in 4 steps:',
        "    1. through `tanh` at model.py:1, from dimension 0 of `a` to dimension 0 of its result",
        "    2. through `neg` at model.py:2 to dimension 0 of its result",
        "    3. through `cos` at model.py:3 to dimension 0 of its result",
        "    4. the result of `cos` at model.py:3 is returned as `result`",
        "  dimension 1 (size 8): whole, because nobody asked: nothing that shares this dimension has an axis on it; "
        "annotate it to split it",
    ]


def test_details_name_rule_factor_strategy_and_priorities() -> None:
    result = pyshardy.propagate(pyshardy.load(CHAIN), PropagateOptions(trace=True))
    text = str(result.explain("tanh", details=True))
    assert "(rule <([i, j])->([i, j]) {i=8, j=8}>, factor i; aggressive strategy, user priority 0, " in text
    assert "rule" not in str(result.explain("tanh"))


def test_data_has_everything_the_text_has() -> None:
    result = pyshardy.propagate(pyshardy.load(CHAIN))
    data = json.loads(json.dumps(result.explain("cos").to_json()))
    (value,) = data["values"]
    first, second = value["dims"]
    (axis,) = first["axes"]
    assert (axis["axis"], axis["kind"], axis["origin_value"], axis["origin_dim"]) == ('"x"', "argument", "`a`", 0)
    assert [(step["op"], step["file"], step["line"]) for step in axis["steps"]] == [
        ("stablehlo.tanh", "model.py", 1), ("stablehlo.negate", "model.py", 2), ("stablehlo.cosine", "model.py", 3)
    ]  # fmt: skip
    assert second["reasons"][0]["kind"] == "nobody asked"


def test_long_chains_show_their_ends() -> None:
    ops = "\n".join(f'  %{n + 1} = stablehlo.tanh %{n} : tensor<8xf32> loc("m.py":{n}:1)' for n in range(20))
    sharding = 'tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}'
    text = f"{HEAD}func.func @main(%0: {sharding}) -> tensor<8xf32> {{\n{ops}\n  return %20 : tensor<8xf32>\n}}"
    result = pyshardy.propagate(pyshardy.load(text), view="stablehlo")
    short, long = str(result.explain("m.py:19")), str(result.explain("m.py:19", details=True))
    assert "    … 14 more steps like these …" in short
    assert "    3. " in short
    assert "    4. " not in short
    assert "    17. " not in short
    assert "    18. " in short
    assert long.count("aggressive strategy") == 20


def test_without_a_trace_the_answer_is_the_same() -> None:
    module = pyshardy.load(CHAIN)
    traced, plain = (pyshardy.propagate(module, PropagateOptions(trace=trace)) for trace in (True, False))
    assert plain.steps == ()
    assert traced.explain("cos") == plain.explain("cos")


CONSTRAINT = (
    HEAD
    + """
func.func @main(%a: tensor<8x8xf32> loc("a")) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %a : tensor<8x8xf32> loc("model.py":1:1)
  %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}, {}]> : tensor<8x8xf32> loc("model.py":2:1)
  return %1 : tensor<8x8xf32>
}
"""
)


def test_a_constraint_is_named_with_its_line() -> None:
    result = pyshardy.propagate(pyshardy.load(CONSTRAINT))
    text = str(result.explain("a"))
    assert '"x", given by the sharding constraint at model.py:2 on dimension 0, came in 1 step:' in text
    assert "back through `tanh` at model.py:1" in text


GROUP = (
    HEAD
    + """
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>} loc("a"), %b: tensor<8xf32> loc("b"))
    -> tensor<8xf32> {
  sdy.sharding_group %a group_id=0 : tensor<8xf32>
  %0 = stablehlo.tanh %b : tensor<8xf32> loc("model.py":1:1)
  sdy.sharding_group %0 group_id=0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
)


def test_a_group_is_named_with_the_member_that_has_the_annotation() -> None:
    result = pyshardy.propagate(pyshardy.load(GROUP))
    assert '"x", given to the sharding group of `a` on dimension 0' in str(result.explain("b"))


MANUAL = (
    HEAD
    + """
func.func @main(%a: tensor<8x8xf32> loc("a")) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {?}]>] out_shardings=[<@mesh, [{"x"}, {?}]>]
      manual_axes={"x"} (%b: tensor<4x8xf32>) {
    %1 = stablehlo.tanh %b : tensor<4x8xf32> loc("model.py":3:1)
    sdy.return %1 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32> loc("model.py":2:1)
  return %0 : tensor<8x8xf32>
}
"""
)


def test_a_manual_computation_is_an_origin() -> None:
    result = pyshardy.propagate(pyshardy.load(MANUAL))
    for name in ("a", "result"):
        assert '"x", given by the manual computation at model.py:2 on dimension 0' in str(result.explain(name))


UNEVEN = (
    HEAD
    + """
func.func @main(%a: tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>} loc("a")) -> tensor<7xf32> {
  %0 = stablehlo.tanh %a : tensor<7xf32>
  return %0 : tensor<7xf32>
}
"""
)


def test_what_the_result_does_not_keep_is_said() -> None:
    result = pyshardy.propagate(pyshardy.load(UNEVEN))
    text = str(result.explain("a"))
    assert 'in the result it is whole, because its 7 elements do not divide evenly by "x"' in text


def test_like_values_of_layers_are_one_story() -> None:
    lines = []
    for layer in range(3):
        before = "%x" if not layer else f"%y{layer - 1}"
        lines.append(
            f"%y{layer} = stablehlo.dot_general {before}, %w{layer}, contracting_dims = [1] x [0] : (tensor<8x8xf32>, "
            'tensor<8x8xf32>) -> tensor<8x8xf32> loc("layer"("model.py":3:1))'
        )
    specs = ['[{}, {"x"}]', '[{}, {"x"}]', '[{"x"}, {}]']
    weights = ", ".join(
        f'%w{layer}: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, {spec}>}} loc("w[{layer}]")'
        for layer, spec in enumerate(specs)
    )
    text = f"""
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%x: tensor<8x8xf32>, {weights}) -> tensor<8x8xf32> {{
      {chr(10).join(lines)}
      return %y2 : tensor<8x8xf32>
    }}"""
    found = pyshardy.propagate(text).explain("model.py:3")
    assert len(found.values) == 3 and len({value.sharding for value in found.values}) == 2
    said = str(found)
    assert "  and 1 more value of this name, shape and sharding" in said.splitlines()
    assert len(found.to_json()["values"]) == 3
