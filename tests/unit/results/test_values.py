"""Every value of a propagated or partitioned program."""

from __future__ import annotations

import math
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.ir.nodes import walk
from pyshardy.ir.shardings import get_sharding

MESH = {"data": 4, "model": 2}
WEIGHT = jax.ShapeDtypeStruct((64, 64), jnp.float32)
X = jax.ShapeDtypeStruct((32, 64), jnp.float32)


def attend(params, x):
    scores = jax.nn.softmax((x @ params["q"]) @ (x @ params["k"]).T)
    return scores @ x


def forward(params, x):
    for layer in params:
        with jax.named_scope("attention"):
            x = x + attend(layer, x)
        x = jax.lax.with_sharding_constraint(x, P("data"))
    return x


def propagated() -> pyshardy.Propagation:
    params = [{"q": WEIGHT, "k": WEIGHT} for _ in range(3)]
    specs = [{"q": P(None, "model"), "k": None}] * 3
    return pyshardy.propagate(pyshardy.load(forward, params, X, mesh=MESH, in_shardings=(specs, None)))


def test_every_tensor_is_there_once() -> None:
    result = propagated()
    values = result.values
    assert [row.name for row in values if row.kind == "input"] == [tensor.name for tensor in result.inputs]
    assert [row.name for row in values if row.kind == "output"] == ["result"]
    ops = [row.op for row in values if row.kind == "op"]
    walked = [op for op in walk(result.module.root) if op.results and op.parent_op.name == "func.func"]
    assert ops == [op.name for op in walked]
    for row, op in zip([row for row in values if row.kind == "op"], walked):
        assert row.shape == op.results[0].type.shape
        assert row.sharding is get_sharding(op.results[0])


def test_an_intermediate_has_all_that_is_known_of_it() -> None:
    queries = propagated().values["attention/dot_general"]
    row = queries[0]
    assert (row.shape, row.local_shape, row.dtype) == ((32, 64), (8, 32), "f32")
    assert (row.bytes_total, row.bytes_per_device) == (32 * 64 * 4, 8 * 32 * 4)
    assert row.spec == pyshardy.PartitionSpec("data", "model")
    assert str(row.sharding) == '<@mesh, [{"data"}, {"model"}]>'
    assert row.given_by == "propagation"
    line = forward.__code__.co_firstlineno + 4
    assert [origin.rpartition("/")[2] for origin in row.origins] == [f"{Path(__file__).name}:{line}", "params[0]['q']"]


def test_a_constraint_is_of_the_user() -> None:
    rows = propagated().values["sharding_constraint"]
    assert [(row.given_by, row.origins) for row in rows] == [("user", ())] * 3


def test_lines_functions_and_layers() -> None:
    values = propagated().values
    line = attend.__code__.co_firstlineno + 2
    found = values[f"test_values.py:{line}"]
    assert [row.op for row in found] == ["stablehlo.dot_general"] * 3
    assert set(found.rows) < set(values["attend"].rows)
    text = str(values["params[*]['q']"])
    assert "params[0..2]['q']  ×3" in text and "user" in text


def test_a_partitioned_program_has_them_too() -> None:
    result = propagated()
    found = pyshardy.partition(result).values["attention*"]
    assert [str(row) for row in found] == [str(row) for row in result.values["attention*"]]
    assert any(row.is_split for row in found)


def test_loops_and_what_reductions_do_inside() -> None:
    def summed(x):
        return jax.lax.fori_loop(0, 3, lambda _, x: jnp.tanh(x), x).sum()

    values = pyshardy.propagate(pyshardy.load(summed, X, mesh=MESH, in_shardings=P("data"))).values
    (inside,) = values["tanh"]
    assert inside.spec == pyshardy.PartitionSpec("data", None) and inside.origins == ("x",)
    (loop,) = [row for row in values["stablehlo.while"] if row.shape]
    assert loop.spec == inside.spec and loop.origins == ("x",)
    assert not [row for row in values if row.op == "stablehlo.add" and row.name == "reduce_sum"]


def test_options_of_propagation_count() -> None:
    text = """sdy.mesh @mesh = <["x"=2, "y"=2]>
    func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}p1]>},
                    %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}p0]>}) -> tensor<8xf32> {
      %0 = stablehlo.add %a, %b : tensor<8xf32>
      return %0 : tensor<8xf32>
    }"""
    assert pyshardy.propagate(text).values["add"][0].origins == ("arg1",)
    ignored = pyshardy.propagate(text, user_priorities=False)
    (row,) = [row for row in ignored.values["add"] if row.kind == "op"]
    assert str(row.sharding) == str(ignored.outputs[0].sharding)


def test_a_row_is_explained() -> None:
    result = propagated()
    for row in (result.values["attention/dot_general"][0], result.values["add"][0], *result.values.rows[:2]):
        (first, *others) = result.explain(row).values
        assert first.shape == row.shape and all(one.shape == row.shape for one in others)
        assert first.sharding == str(row.sharding).removeprefix("<@mesh, ").removesuffix(">") or row.sharding is None


def test_a_variable_is_explained() -> None:
    result = propagated()
    line = attend.__code__.co_firstlineno + 1
    for name in ("scores", "scores of attend", "`scores` of `attend`"):
        found = result.explain(name)
        assert found.asked == name and found.values
        assert all(f"test_values.py:{line}" in one.value and one.shape == (32, 32) for one in found.values)
    with pytest.raises(pyshardy.UsageError, match="got 'scores of forward'"):
        result.explain("scores of forward")


def test_the_largest_value_of_a_line_comes_first() -> None:
    line = attend.__code__.co_firstlineno + 1
    shapes = [one.shape for one in propagated().explain(f"test_values.py:{line}").values]
    sizes = [math.prod(shape) for shape in shapes]
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) > 1
