"""Inputs and outputs under the names of the user."""

from __future__ import annotations

from collections import namedtuple

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from pyshardy.api.load import load
from pyshardy.core.notation import parse_sharding
from pyshardy.errors import InvalidModuleError
from pyshardy.frontend.interface import InterfaceTensor, input_tensors, output_tensors

TEXT = """\
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}, %t: !stablehlo.token, %b: tensor<bf16>)
    -> (tensor<8x4xf32>, !stablehlo.token, tensor<bf16> {sdy.sharding = #sdy.sharding<@mesh, []>}) {
  return %a, %t, %b : tensor<8x4xf32>, !stablehlo.token, tensor<bf16>
}
"""
ONE = np.ones(4, np.float32)


def names(source, *args) -> tuple[list[str], list[str]]:
    root = load(source, *args).root
    return [tensor.name for tensor in input_tensors(root)], [tensor.name for tensor in output_tensors(root)]


def test_ports_of_text_are_numbered_and_tokens_left_out() -> None:
    root = load(TEXT).root
    assert input_tensors(root) == [
        InterfaceTensor("arg0", 0, (8, 4), "f32", parse_sharding('<@mesh, [{"x"}, {?}]>')),
        InterfaceTensor("arg2", 2, (), "bf16", None),
    ]
    assert output_tensors(root) == [
        InterfaceTensor("result[0]", 0, (8, 4), "f32", None),
        InterfaceTensor("result[2]", 2, (), "bf16", parse_sharding("<@mesh, []>")),
    ]


def test_locations_in_text_give_names() -> None:
    text = 'func.func @main(%a: tensor<4xf32> loc("weights")) -> tensor<4xf32> { return %a : tensor<4xf32> }'
    assert names(text) == (["weights"], ["result"])


Pair = namedtuple("Pair", "left right")


@pytest.mark.parametrize(
    ("function", "args", "inputs", "outputs"),
    [
        (lambda x: x, (ONE,), ["x"], ["result"]),
        (lambda x, y: (x, y), (ONE, ONE), ["x", "y"], ["result[0]", "result[1]"]),
        (lambda x: [x], (ONE,), ["x"], ["result[0]"]),
        (lambda params: {"new": params["w"]}, ({"w": ONE},), ["params['w']"], ["result['new']"]),
        (lambda p: {"a": [p["l"][1]["w"]], "b": p["l"][0]["w"]}, ({"l": [{"w": ONE}, {"w": ONE}]},),
         ["p['l'][0]['w']", "p['l'][1]['w']"], ["result['a'][0]", "result['b']"]),
        (lambda x, unused, y: x + y, (ONE, ONE, ONE), ["x", "y"], ["result"]),
        (lambda *many: many[0] + many[1], (ONE, ONE), ["many[0]", "many[1]"], ["result"]),
        (lambda pair: Pair(pair.right, pair.left), (Pair(ONE, ONE),), ["pair.left", "pair.right"],
         ["result.left", "result.right"]),
        (lambda x: (), (ONE,), [], []),
        (lambda x: None, (ONE,), [], []),
    ],
)  # fmt: skip
def test_names_are_those_of_the_function(function, args: tuple, inputs: list[str], outputs: list[str]) -> None:
    assert names(function, *args) == (inputs, outputs)


def test_keyword_arguments_have_their_names() -> None:
    def scaled(x, *, scale, shift):
        return x * scale + shift["by"]

    lowered = jax.jit(scaled).lower(ONE, scale=ONE, shift={"by": ONE})
    assert names(lowered) == (["x", "scale", "shift['by']"], ["result"])


def test_a_key_is_its_data() -> None:
    (tensor,) = input_tensors(load(lambda key: jax.random.bits(key), jax.random.key(0)).root)
    assert (tensor.name, tensor.shape, tensor.element) == ("key", (2,), "ui32")


def test_shardings_are_those_of_the_user() -> None:
    mesh = Mesh(np.array(jax.devices()[:2]), ("x",))
    rows = NamedSharding(mesh, PartitionSpec("x", None))
    module = load(lambda a, b: (a, b), np.ones((4, 2)), ONE, in_shardings=(rows, None), out_shardings=(None, None))
    assert [tensor.sharding for tensor in input_tensors(module.root)] == [parse_sharding('<@mesh, [{"x"}, {}]>'), None]
    assert [tensor.sharding for tensor in output_tensors(module.root)] == [None, None]


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("module {}", "a module without functions"),
        ("func.func @a() { return }\nfunc.func @b() { return }", "the functions @a, @b"),
    ],
)
def test_a_module_without_a_main_function(text: str, got: str) -> None:
    with pytest.raises(InvalidModuleError, match=f"looking for the main function: got {got}, needed a function named"):
        input_tensors(load(text).root)


def test_the_only_function_is_the_main_one() -> None:
    text = "func.func @step(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }"
    assert names(text) == (["arg0"], ["result"])
    assert names(text.replace("@step", "@main") + "\nfunc.func private @other() { return }") == (["arg0"], ["result"])
