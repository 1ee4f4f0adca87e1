"""Where the shardings of inputs and outputs come from."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.propagation.options import PropagateOptions, View

MLP = Path(__file__).parents[3] / "examples" / "mlp.mlir"
MESH = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("data", "model"))
ROWS = NamedSharding(MESH, P("data"))
X = jax.ShapeDtypeStruct((8, 16), jnp.float32)
Found = tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...]]


def origins(module: pyshardy.Module, **options: object) -> Found:
    summary = pyshardy.propagate(module, **options).summary_with_origins  # type: ignore[arg-type]
    inputs, outputs = (tuple(row.origins for row in rows) for rows in (summary.inputs, summary.outputs))
    return inputs, outputs


def test_an_argument_gives_it_to_others_and_nothing_to_itself() -> None:
    assert origins(pyshardy.load(MLP)) == (((), (), ("params['w1']",)), (("x",),))


def test_every_axis_has_its_own() -> None:
    def f(a, b):
        return a @ b

    columns = NamedSharding(MESH, P(None, "model"))
    module = pyshardy.load(f, X, jax.ShapeDtypeStruct((16, 4), jnp.float32), in_shardings=(ROWS, columns))
    assert origins(module) == (((), ()), (("a", "b"),))


def test_an_output_gives_it_to_inputs() -> None:
    module = pyshardy.load(lambda a: jnp.tanh(a), X, out_shardings=ROWS)
    assert origins(module) == ((("result",),), ((),))


def test_a_constraint_is_known_by_its_line() -> None:
    def f(a):
        return jnp.tanh(jax.lax.with_sharding_constraint(jnp.sin(a), ROWS))

    line = f.__code__.co_firstlineno + 1
    (found,), (result,) = origins(pyshardy.load(f, X))
    assert found == result
    assert [name.rpartition("/")[2] for name in found] == [f"{Path(__file__).name}:{line}"]


def test_so_is_a_manual_computation() -> None:
    def f(a):
        return jax.shard_map(jnp.tanh, mesh=MESH, in_specs=P("data"), out_specs=P("data"))(a)

    line = f.__code__.co_firstlineno + 1
    (found,), _ = origins(pyshardy.load(f, X))
    assert [name.rpartition("/")[2] for name in found] == [f"{Path(__file__).name}:{line}"]


TWO = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.tanh %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func @f(%b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  return %b : tensor<8xf32>
}"""


def test_nothing_is_said_where_names_could_be_of_another_function() -> None:
    assert origins(pyshardy.load(TWO), view=View.STABLEHLO) == (((),), ((),))
    assert origins(pyshardy.load(TWO.partition("func.func @f")[0])) == (((),), (("arg0",),))


def test_options_of_propagation_count() -> None:
    text = """sdy.mesh @mesh = <["x"=2, "y"=2]>
    func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}p1]>},
                    %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}p0]>}) -> tensor<8xf32> {
      %0 = stablehlo.add %a, %b : tensor<8xf32>
      return %0 : tensor<8xf32>
    }"""
    assert origins(pyshardy.load(text))[1] == (("arg1",),)
    assert origins(pyshardy.load(text), user_priorities=False)[1] != (("arg1",),)


RETURNED = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<8xf32>)
    -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.add %a, %b : tensor<8xf32>
  return %0, %0 : tensor<8xf32>, tensor<8xf32>
}"""


def test_a_value_that_is_returned_twice_names_them_twice() -> None:
    assert origins(pyshardy.load(RETURNED)) == (((), ("arg0",)), (("arg0",), ("arg0",)))


def test_an_edit_names_what_the_edit_annotates() -> None:
    edited = pyshardy.propagate(RETURNED).edit({"arg0": None, "arg1": "x"}).result
    assert [row.origins for row in edited.summary_with_origins.inputs] == [("arg1",), ()]
    assert [row.origins for row in edited.values] == [("arg1",), (), ("arg1",), ("arg1",), ("arg1",)]


def test_a_partition_without_a_result_of_propagation_has_the_same_origins() -> None:
    alone, after = pyshardy.partition(MLP), pyshardy.partition(pyshardy.propagate(MLP))
    assert [row.origins for row in alone.values] == [row.origins for row in after.values]


@pytest.mark.slow
@pytest.mark.parametrize("view", ["xla", "stablehlo"])
def test_a_real_program_names_arguments_for_whatever_is_inferred(view: str) -> None:
    from pyshardy.examples import transformer

    module = pyshardy.load(transformer.lower(transformer.Config(layers=2, width=16, heads=2, vocabulary=32)))
    result = pyshardy.propagate(module, PropagateOptions(view=View(view)))
    summary = result.summary_with_origins
    names = {row.name for row in summary.inputs}
    for row in summary.inputs:
        assert bool(row.origins) == row.is_inferred, row.name
        assert set(row.origins) <= names - {row.name}
    given = {row.name: row.origins for row in summary.inputs}
    assert given["params['layers'][1]['w2']"] == ("params['layers'][1]['w1']",)
    assert sum(bool(row.origins) for row in summary.outputs) >= sum(row.is_inferred for row in summary.outputs) / 2
