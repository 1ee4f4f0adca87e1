"""How many rounds loops make."""

from __future__ import annotations

import operator

import pytest

from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.trip_counts import TripCounts, trip_count_until

OPS = {"LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge, "NE": operator.ne, "EQ": operator.eq}


def loops(text: str) -> tuple[TripCounts, list[Op]]:
    root = Module.parse(text).root
    return TripCounts(root), [op for op in walk(root) if op.name == "stablehlo.while"]


def counted(body: str, rest: str = "", arguments: str = "") -> list[int | None]:
    trips, found = loops(f"func.func @main({arguments}) {{ {body} return }}\n{rest}")
    assert found
    return [trips.trip_count(loop) for loop in found]


def loop(
    start: str = "dense<0>", test: str = "LT, %i, %n", bound: str = "dense<9>", following: str = "stablehlo.add %i, %s",
    step: str = "dense<1>", type: str = "i32", inside: str = "",
) -> str:  # fmt: skip
    """A loop with a counter behind something else that it carries."""
    t = f"tensor<{type}>"
    return f"""
    %start = stablehlo.constant {start} : {t}
    %other = stablehlo.constant dense<1.0> : tensor<f32>
    %s = stablehlo.constant {step} : {t}
    %q:2 = stablehlo.while(%x = %other, %i = %start) : tensor<f32>, {t} cond {{
      %n = stablehlo.constant {bound} : {t}
      %p = stablehlo.compare {test} : ({t}, {t}) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      {inside}
      %k = {following} : {t}
      stablehlo.return %x, %k : tensor<f32>, {t}
    }}"""


@pytest.mark.parametrize(
    ("text", "rounds"),
    [
        (loop(), 9),
        (loop(test="LE, %i, %n"), 10),
        (loop(test="GT, %n, %i"), 9),
        (loop(test="GE, %n, %i"), 10),
        (loop(step="dense<4>"), 3),
        (loop(following="stablehlo.add %s, %i"), 9),
        (loop(start="dense<9>"), 0),
        (loop(start="dense<20>"), 0),
        (loop(start="dense<10>", test="GT, %i, %n", bound="dense<0>", following="stablehlo.subtract %i, %s"), 10),
        (loop(start="dense<10>", test="GE, %i, %n", bound="dense<0>", step="dense<-3>"), 4),
        (loop(test="NE, %i, %n"), 9),
        (loop(test="NE, %i, %n", step="dense<3>"), 3),
        (loop(test="NE, %i, %n", step="dense<2>"), None),
        (loop(test="EQ, %i, %n", bound="dense<0>"), 1),
        (loop(test="EQ, %i, %n"), 0),
        (loop(step="dense<-1>"), None),
        (loop(step="dense<0>"), None),
        (loop(following="stablehlo.multiply %i, %s"), None),
        (loop(following="stablehlo.subtract %s, %i"), None),
        (loop(start="dense<250>", test="LE, %i, %n", bound="dense<255>", type="ui8"), None),
        (loop(start="dense<250>", bound="dense<255>", type="ui8"), 5),
        (loop(bound="dense<127>", step="dense<2>", type="i8"), None),
        (loop(bound="dense<7>", type="i4"), 7),
        (loop(start="dense<0.0>", bound="dense<9.0>", step="dense<1.0>", type="f32"), None),
        (loop(start="dense<[[0]]>", bound="dense<[[9]]>", step="dense<[[1]]>", type="1x1xi32").replace(
            "-> tensor<i1>", "-> tensor<1x1xi1>").replace("stablehlo.return %p", "%r = stablehlo.reshape %p : "
            "(tensor<1x1xi1>) -> tensor<i1>\n stablehlo.return %r"), 9),
    ],
)  # fmt: skip
def test_a_counter(text: str, rounds: int | None) -> None:
    assert counted(text) == [rounds]


@pytest.mark.parametrize("direction", OPS)
def test_as_many_rounds_as_counting_makes(direction: str) -> None:
    for first in range(-7, 8):
        for step in range(-3, 4):
            number, rounds = first, 0
            while OPS[direction](number, 0) and rounds < 100:
                number, rounds = number + step, rounds + 1
            assert trip_count_until(direction, first, step) == (None if rounds == 100 else rounds)


def test_a_negated_condition() -> None:
    text = loop(test="GE, %i, %n").replace("return %p", "return %not").replace(
        "stablehlo.return %not", "%not = stablehlo.not %p : tensor<i1>\nstablehlo.return %not")  # fmt: skip
    assert counted(text) == [9]


def test_a_condition_that_asks_for_more_is_not_known() -> None:
    text = loop().replace("stablehlo.return %p", "%both = stablehlo.and %p, %p : tensor<i1>\nstablehlo.return %both")
    assert counted(text) == [None]


def test_the_bound_stands_outside_converted() -> None:
    before = """%b = stablehlo.constant dense<8> : tensor<1xui8>
    %c = stablehlo.reshape %b : (tensor<1xui8>) -> tensor<ui8>
    %d = stablehlo.convert %c : (tensor<ui8>) -> tensor<i32>"""
    text = loop(test="LE, %i, %d")
    assert counted(before + text) == [9]
    assert counted(
        before.replace("dense<8>", "dense<200>").replace("i32", "i8") + loop(test="LE, %i, %d", type="i8")
    ) == [None]


def test_a_bound_from_outside_is_known_if_it_is_given() -> None:
    trips, (found,) = loops(f"func.func @main(%m: tensor<i32>) {{ {loop(test='LT, %i, %m')} return }}")
    (argument,) = found.enclosing("func.func").region.block.args  # type: ignore[union-attr]
    assert (trips.trip_count(found), trips.trip_count(found, {argument: 12})) == (None, 12)


CARRIED = """
%start = stablehlo.constant dense<2> : tensor<i32>
%end = stablehlo.constant dense<12> : tensor<i32>
%q:2 = stablehlo.while(%i = %start, %n = %end) : tensor<i32>, tensor<i32> cond {
  %p = func.call @check(%n, %i) : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
} do {
  %b:2 = func.call @body(%n, %i) : (tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>)
  %r:2 = stablehlo.while(%j = %b#1, %m = %b#0) : tensor<i32>, tensor<i32> cond {
    %c = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    stablehlo.return %j, %m : tensor<i32>, tensor<i32>
  }
  %t:2 = stablehlo.optimization_barrier %r#0, %r#1 : tensor<i32>, tensor<i32>
  stablehlo.return %t#0, %t#1 : tensor<i32>, tensor<i32>
}
"""
CHECK_AND_BODY = """
func.func private @check(%n: tensor<i32>, %i: tensor<i32>) -> tensor<i1> {
  %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
  return %p : tensor<i1>
}
func.func private @body(%n: tensor<i32>, %i: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
  %j = func.call @add_one(%i) : (tensor<i32>) -> tensor<i32>
  %k = func.call @add_one(%j) : (tensor<i32>) -> tensor<i32>
  return %n, %k : tensor<i32>, tensor<i32>
}
func.func private @add_one(%i: tensor<i32>) -> tensor<i32> {
  %s = stablehlo.constant dense<1> : tensor<i32>
  %j = stablehlo.add %i, %s : tensor<i32>
  return %j : tensor<i32>
}
"""


def test_counter_and_bound_go_through_calls_and_inner_loops() -> None:
    assert counted(CARRIED, CHECK_AND_BODY) == [5, None]


def test_a_bound_that_changes_is_part_of_the_count() -> None:
    both = CHECK_AND_BODY.replace("return %n, %k", "%l = stablehlo.subtract %n, %one : tensor<i32>\nreturn %l, %k").replace(
        "%j = func.call", "%one = stablehlo.constant dense<3> : tensor<i32>\n%j = func.call", 1)  # fmt: skip
    assert counted(CARRIED, both)[0] == 2


def test_a_function_that_calls_itself_is_not_followed() -> None:
    again = CHECK_AND_BODY.replace("%s = stablehlo.constant dense<1> : tensor<i32>",
                                   "%s = func.call @add_one(%i) : (tensor<i32>) -> tensor<i32>")  # fmt: skip
    assert counted(CARRIED, again)[0] is None


def test_long_chains() -> None:
    steps = "\n".join(f"%k{i + 1} = stablehlo.add %k{i}, %s : tensor<i32>" for i in range(3000))
    text = loop(
        bound="dense<3001>",
        inside=f"%k0 = stablehlo.add %i, %s : tensor<i32>\n{steps}",
        following="stablehlo.add %k3000, %s",
    )
    assert counted(text) == [1]


def test_constants() -> None:
    text = """func.func @main(%a: tensor<i32>) {
      %0 = stablehlo.constant dense<6> : tensor<i32>
      %1 = stablehlo.constant dense<7> : tensor<i32>
      %2 = stablehlo.multiply %0, %1 : tensor<i32>
      %3 = stablehlo.maximum %2, %0 : tensor<i32>
      %4 = stablehlo.minimum %3, %a : tensor<i32>
      %5 = stablehlo.constant dense<3> : tensor<2xi32>
      return
    }"""
    root = Module.parse(text).root
    values = [op.result for op in walk(root) if op.results]
    assert [TripCounts(root).constant(value) for value in values] == [6, 7, 42, 42, None, None]
