"""Finding values by what people call them."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import pyshardy
from pyshardy import Propagation
from pyshardy.errors import UsageError

TEXT = """
sdy.mesh @mesh = <["x"=2]>
func.func public @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>} loc("params['w1']"),
                       %b: tensor<8x8xf32> loc("params['w2']")) -> (tensor<8x8xf32> {jax.result_info = "['y']"}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>)
    -> tensor<8x8xf32> loc("jit(f)/jvp(mlp)/dot_general"(callsite("layer"("src/model.py":41:8) at "f"("main.py":3:1))))
  %1 = stablehlo.tanh %0 : tensor<8x8xf32> loc("jit(f)/act/tanh"("src/model.py":42:4))
  %2 = stablehlo.add %1, %1 : tensor<8x8xf32> loc("jit(f)/add"("lib/model.py":42:9))
  return %2 : tensor<8x8xf32>
}
"""


@pytest.fixture(scope="module")
def result() -> Propagation:
    return pyshardy.propagate(pyshardy.load(TEXT))


@pytest.fixture
def found(result: Propagation) -> Callable[[str], list[str]]:
    return lambda wanted: [value.value for value in result.explain(wanted).values]


def test_an_argument_by_its_path(found: Callable[[str], list[str]]) -> None:
    assert found("params['w1']") == ["`params['w1']`"]


def test_an_output_by_its_path(found: Callable[[str], list[str]]) -> None:
    assert found("result['y']") == ["`result['y']`"]


@pytest.mark.parametrize("wanted", ["mlp", "decoder/mlp", "mlp/up", "decoder/mlp/up", "jvp(decoder)/mlp/up"])
def test_a_scope_by_any_part_of_its_path(wanted: str) -> None:
    text = TEXT.replace('"jit(f)/jvp(mlp)/dot_general"', '"jit(f)/jvp(decoder)/mlp/up/dot_general"')
    found = pyshardy.propagate(pyshardy.load(text))
    if wanted == "mlp":  # the last scope counts alone
        with pytest.raises(UsageError, match="decoder/mlp/up"):
            found.explain(wanted)
    else:
        (value,) = found.explain(wanted).values
        assert value.value == "the result of `dot_general` in `decoder/mlp/up` at model.py:41"


def test_a_line_of_the_user_and_the_line_in_a_library_that_it_calls() -> None:
    location = 'callsite("up"("/v/site-packages/flax/linear.py":287:8) at "f"("src/model.py":42:4))'
    library = pyshardy.propagate(TEXT.replace('"src/model.py":42:4', location))
    for line in ("model.py:42", "linear.py:287", "flax/linear.py:287:8"):
        assert "the result of `tanh` in `act` at model.py:42" in [one.value for one in library.explain(line).values]


DOT = "the result of `dot_general` in `mlp` at model.py:41"
TANH = "the result of `tanh` in `act` at model.py:42"
ADD = "the result of `add` at model.py:42"


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("model.py:41", [DOT]),
        ("src/model.py:41", [DOT]),
        ("model.py:42", [TANH, ADD]),
        ("lib/model.py:42", [ADD]),
        ("model.py:42:4", [TANH]),
        ("mlp", [DOT]),
        ("layer", [DOT]),
        ("jit(f)/jvp(mlp)/dot_general", [DOT]),
        ("jit(f)/act", [TANH]),
        ("tanh", [TANH]),
        ("stablehlo.tanh", [TANH]),
    ],
)
def test_what_an_op_computes(wanted: str, expected: list[str], found: Callable[[str], list[str]]) -> None:
    assert found(wanted) == expected


@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        ("w1", ["params['w1']"]),
        ("params['w3']", ["params['w1']", "params['w2']"]),
        ("model.py:40", ["model.py:41", "model.py:42"]),
        ("tahn", ["tanh"]),
    ],
)
def test_an_unknown_name_gets_the_nearest_ones(wanted: str, near: list[str], result: Propagation) -> None:
    with pytest.raises(UsageError, match=re.escape(f"got '{wanted}'")) as caught:
        result.explain(wanted)
    assert [name for name in near if name in (caught.value.hint or "").split(", ")] == near


def test_a_name_like_nothing_gets_some_names(result: Propagation) -> None:
    with pytest.raises(UsageError, match="needed an argument, a result, FILE:LINE, a name scope or an op") as caught:
        result.explain("§§§§")
    first = [port.name for port in result.inputs][:5]
    assert (caught.value.hint or "").split(", ")[: len(first)] == first


def test_what_is_not_a_name_is_refused(result: Propagation) -> None:
    with pytest.raises(UsageError, match="looking for a value to explain: got an int, needed an argument"):
        result.explain(3)  # type: ignore[arg-type]
