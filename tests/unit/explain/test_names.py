"""What ops and values are called."""

from __future__ import annotations

import pytest

import pyshardy
from pyshardy.explain.names import named_scope, place_text, short_label
from pyshardy.explain.subject import Label


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("jit(f)/mlp/dot_general", "mlp"),
        ("jit(f)/transpose(jvp(mlp))/dot_general", "mlp"),
        ("jit(f)/outer/inner/dot_general", "inner"),
        ("jit(f)/dot_general", None),
        ("jit(f)/jvp()/dot_general", None),
        ("jit(f)/while/body/closed_call/dot_general", None),
        ("jit(f)/bsd,dh->bsh/dot_general", None),
        (None, None),
    ],
)
def test_the_scope_that_a_user_named(scope: str | None, expected: str | None) -> None:
    assert named_scope(Label("stablehlo.dot_general", scope)) == expected


def test_an_op_without_a_scope_has_its_own_name() -> None:
    assert short_label(Label("stablehlo.add")) == "add"
    assert short_label(Label("sdy.sharding_constraint", "jit(f)/x")) == "sharding_constraint"
    assert short_label(Label("stablehlo.while", "jit(f)/while")) == "loop"


GRADIENT = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>} loc("a")) -> tensor<8xf32> {
  %0 = stablehlo.tanh %a : tensor<8xf32> loc("jit(f)/jvp(mlp)/tanh"("model.py":5:1))
  %1 = stablehlo.multiply %0, %a : tensor<8xf32> loc("jit(f)/transpose(jvp(mlp))/mul"("model.py":5:1))
  %2 = stablehlo.negate %1 : tensor<8xf32> loc("jit(f)/transpose(jvp())/neg"("model.py":6:1))
  return %2 : tensor<8xf32>
}
"""


def test_ops_of_the_gradient_are_told_from_what_the_user_wrote() -> None:
    text = str(pyshardy.propagate(GRADIENT).explain("result"))
    assert "`tanh` in `mlp` at model.py:5" in text
    assert "`mul` in the gradient of `mlp` at model.py:5" in text
    assert "`neg` in the gradient at model.py:6" in text


def test_places_name_the_file_and_no_folder() -> None:
    assert place_text(Label("a", file="/home/me/model.py", line=3)) == " at model.py:3"
    assert place_text(Label("a")) == ""


LOOP = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>} loc("a")) -> tensor<8xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %1:2 = stablehlo.while(%i = %c, %h = %a) : tensor<i32>, tensor<8xf32>
    cond {
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %k = stablehlo.tanh %h : tensor<8xf32> loc("model.py":5:1)
      stablehlo.return %j, %k : tensor<i32>, tensor<8xf32>
    } loc("jit(f)/while"("model.py":4:1))
  return %1#1 : tensor<8xf32>
}
"""


def test_values_that_a_loop_carries() -> None:
    text = str(pyshardy.propagate(pyshardy.load(LOOP)).explain("tanh"))
    where = "the result of `tanh` at model.py:5"
    assert f"across through the loop at model.py:4, from dimension 0 of `a` to dimension 0 of {where}" in text
    result = str(pyshardy.propagate(pyshardy.load(LOOP)).explain("result"))
    assert "value 1 that the loop at model.py:4 carries is returned as `result`" in result


def test_an_op_without_a_place_is_told_by_what_is_in_front_of_it() -> None:
    text = LOOP.replace('%k = stablehlo.tanh %h : tensor<8xf32> loc("model.py":5:1)',
                        '%g = stablehlo.tanh %h : tensor<8xf32> loc("model.py":5:1)\n'
                        '      %k = stablehlo.negate %g : tensor<8xf32> loc("neg")')  # fmt: skip
    found = pyshardy.propagate(pyshardy.load(text)).explain("neg")
    assert found.values[0].value == "the result of `neg` behind `tanh` at model.py:5"
