"""Hints of other code: which are offered, what they say, and that they save what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy import Partition
from pyshardy.explain.collectives import Way
from pyshardy.results.hints.constraints import left_out_constraints


def mesh() -> jax.sharding.Mesh:
    return jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def array(shape: tuple[int, ...], *spec: Any, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh(), P(*spec)))


def constrain(x: jax.Array, *spec: Any) -> jax.Array:
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh(), P(*spec)))


def partition(function: Any, *arguments: Any) -> Partition:
    return pyshardy.partition(pyshardy.load(jax.jit(function).lower(*arguments)), compiler="none")


def ways(found: Partition) -> list[Way]:
    return [way for story in found.hints() for way in story.ways]


def kernel(x: jax.Array, scale: jax.Array) -> jax.Array:
    return jax.ffi.ffi_call("my_kernel", jax.ShapeDtypeStruct(x.shape, x.dtype))(x, scale)


@pytest.mark.parametrize(
    ("shape", "given", "specs"),
    [
        ((64, 32), ("data",), "in_specs=(P('data'), P()), out_specs=P('data')"),
        ((64, 32), (("data", "model"),), "in_specs=(P(('data', 'model')), P()), out_specs=P(('data', 'model'))"),
        ((8, 4, 16, 32), ("data", "model"), "in_specs=(P('data', 'model'), P()), out_specs=P('data', 'model')"),
        ((64, 32), ("data", "model"), "in_specs=(P('data'), P()), out_specs=P('data')"),  # whole rows
    ],
)
def test_a_kernel_runs_on_rows(shape: tuple[int, ...], given: tuple[Any, ...], specs: str) -> None:
    found = partition(lambda x, scale: kernel(x, scale) * 2, array(shape, *given), array((32,)))
    way = next(way for way in ways(found) if "shard_map" in way.text)
    assert f"in jax.shard_map with {specs}, if it computes a shard from that shard alone: " in way.text
    assert way.sent_bytes < found.traffic.sent_bytes_per_device

    def mapped(x: jax.Array, scale: jax.Array) -> jax.Array:
        inner, outer = eval(f"dict({specs})", {"P": P, "dict": dict}).values()
        return jax.shard_map(kernel, mesh=mesh(), in_specs=inner, out_specs=outer)(x, scale) * 2

    then = partition(mapped, array(shape, *given), array((32,)))
    assert then.traffic.sent_bytes_per_device == way.sent_bytes


def test_a_kernel_keeps_the_axes_of_its_heads_and_of_its_lengths() -> None:
    def attend(q: jax.Array, lengths: jax.Array) -> jax.Array:
        return jax.ffi.ffi_call("my_attention", jax.ShapeDtypeStruct(q.shape, q.dtype))(q, lengths) * 2

    q, lengths = array((8, 16, 4, 32), "data", None, "model"), array((8,), "data")
    (way,) = [way for way in ways(partition(attend, q, lengths)) if "shard_map" in way.text]
    assert "in_specs=(P('data', None, 'model'), P('data')), out_specs=P('data', None, 'model')" in way.text
    assert way.sent_bytes == 0
    (other,) = [way for way in ways(partition(attend, q, array((8,)))) if "shard_map" in way.text]
    assert "in_specs=(P('data', None, 'model'), P()), " in other.text  # whole lengths may be of all sequences


def test_a_kernel_on_one_number_per_row_has_no_rows() -> None:
    """All of a vector may be one row: nothing is known to be independent."""
    found = partition(lambda x, scale: kernel(x, scale) * 2, array((64,), "data"), array((32,)))
    assert found.traffic.sent_bytes_per_device and not [way for way in ways(found) if "shard_map" in way.text]


def test_layers_that_share_a_line_share_a_change() -> None:
    def step(x: jax.Array, scale: jax.Array) -> jax.Array:
        for _ in range(3):
            x = kernel(jnp.tanh(x), scale)
        return x

    found = partition(step, array((64, 32), "data"), array((32,)))
    (way,) = [way for way in ways(found) if "shard_map" in way.text]
    assert found.traffic.sent_bytes_per_device and way.sent_bytes == 0


def test_a_constraint_is_left_out_at_the_line_that_tells_it_apart() -> None:
    def step(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        x = constrain(x, None, None)
        return jnp.sin(x), constrain(y, "data")

    module = pyshardy.load(jax.jit(step).lower(array((64, 32), "data"), array((64, 32))))
    first, second = left_out_constraints(module)
    lines = Path(__file__).read_text().splitlines()
    assert [edit.place[0] for edit in (first, second)] == [__file__] * 2
    assert [lines[edit.place[1] - 1].strip() for edit in (first, second)] == [
        "x = constrain(x, None, None)",
        'return jnp.sin(x), constrain(y, "data")',
    ]
    assert first.text.startswith("leave out the constraint P() at ")
    found = pyshardy.partition(module, compiler="none")
    assert found.traffic.sent_bytes_per_device > 0
    assert pyshardy.partition(first.apply(module), compiler="none").traffic.sent_bytes_per_device == 0


def test_a_constraint_that_repeats_an_annotation_is_none_of_the_users() -> None:
    """As flax constrains a weight to its annotation where a layer reads it."""

    def step(x: jax.Array, w: jax.Array) -> jax.Array:
        repeated = jax.checkpoint(lambda w: jnp.sin(constrain(w, "model")))(w)
        return constrain(x @ repeated, None, "data")

    module = pyshardy.load(jax.jit(step).lower(array((64, 32), "data"), array((32, 64), "model")))
    assert module.text().count("sdy.sharding_constraint") == 2
    (edit,) = left_out_constraints(module)
    assert "P(None, 'data')" in edit.text


def test_a_constraint_goes_with_its_gradient() -> None:
    def loss(x: jax.Array) -> jax.Array:
        return (jnp.tanh(constrain(jnp.sin(x), None, "model")) ** 2).sum()

    module = pyshardy.load(jax.jit(jax.grad(loss)).lower(array((64, 32), "data")))
    (edit,) = left_out_constraints(module)
    assert module.text().count("sdy.sharding_constraint") == 2
    assert "sdy.sharding_constraint" not in edit.apply(module).text()


def test_a_constraint_inside_checkpoint_is_one_with_that_of_its_gradient() -> None:
    """JAX names the calls around `jax.checkpoint` for what its gradient computes again, and for nothing else."""

    def layer(x: jax.Array) -> jax.Array:
        return jnp.tanh(constrain(jnp.sin(x), None, "model"))

    def loss(x: jax.Array) -> jax.Array:
        for _ in range(2):
            x = jax.checkpoint(layer)(x)
        return (x**2).sum()

    module = pyshardy.load(jax.jit(jax.grad(loss)).lower(array((64, 32), "data")))
    (edit,) = left_out_constraints(module)
    assert len(edit.codes) == 2 and "constrain(jnp.sin(x)" in Path(__file__).read_text().splitlines()[edit.place[1] - 1]
    assert "sdy.sharding_constraint" in module.text() and "sdy.sharding_constraint" not in edit.apply(module).text()


def test_the_collective_of_a_constraint_names_it() -> None:
    found = partition(lambda x: jnp.abs(constrain(x, None, None)) * 2, array((64, 32), "data"))
    (story,) = found.collectives
    assert '`x` is [{"data"}, {}], and the `sharding_constraint` in `constrain` at ' in story.reason
    assert story.reason.endswith("says [{}, {}]")


def test_what_changes_results_comes_last_and_says_so() -> None:
    def step(x: jax.Array, w: jax.Array) -> jax.Array:
        q, k, v = jnp.split(x @ w, 3, axis=-1)
        return jnp.tanh(q) * k + v

    found = partition(step, array((64, 32), "data"), array((32, 96), None, "model"))
    (story,) = found.hints()
    last = story.ways[-1]
    assert "x.reshape(*x.shape[:-1], 32, 3)[..., i], every 3rd element of dimension 1, and not 32 in a row" in last.text
    assert "if the weights can have their elements in that order: " in last.text
    assert last.sent_bytes == 0 and (len(story.ways) == 1 or last.text.startswith("Or: "))
    assert story.hint == " ".join(way.text for way in story.ways)
    assert story.to_json()["hint"] == story.hint and story.to_json()["ways"][-1]["sent_bytes"] == 0
