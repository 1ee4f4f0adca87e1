"""The tokens of a run: which input has them, and how many it takes in a second."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import pyshardy
from pyshardy.results.tokens import tokens_of
from support.tables import tables_in

Params = dict[str, Any]
PARAMS: Params = {
    "embed": jax.ShapeDtypeStruct((1000, 64), "float32"),
    "positions": jax.ShapeDtypeStruct((128, 64), "float32"),
    "up": jax.ShapeDtypeStruct((64, 64), "float32"),
}


def numbers(*shape: int, dtype: str = "int32") -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def language_model(params: Params, tokens: jax.Array, labels: jax.Array) -> jax.Array:
    x = jnp.tanh(params["embed"][tokens] @ params["up"])
    scores = jax.nn.log_softmax(x @ params["embed"].T)
    return -jnp.take_along_axis(scores, labels[..., None], axis=-1).mean()


def one_hot(params: Params, labels: jax.Array, tokens: jax.Array) -> jax.Array:
    scores = jax.nn.log_softmax(jax.nn.one_hot(tokens, 1000) @ params["embed"]).mean(axis=1)
    return -(scores[:16, None] * jax.nn.one_hot(labels, 64)).sum()


def shifted(params: Params, tokens: jax.Array) -> jax.Array:
    return jnp.take(params["embed"], tokens[:, :-1], axis=0).sum()


def micro_batches(params: Params, tokens: jax.Array) -> jax.Array:
    parts = tokens.reshape(4, -1, tokens.shape[1])
    return jax.lax.map(lambda part: params["embed"][part].sum(), parts).sum()


def with_positions(params: Params, tokens: jax.Array, places: jax.Array) -> jax.Array:
    return (params["embed"][tokens] + params["positions"][places]).sum()


def encoder_and_decoder(params: Params, source: jax.Array, target: jax.Array) -> jax.Array:
    return params["embed"][source].mean() + params["embed"][target].mean()


def pages(params: Params, table: jax.Array, cache: jax.Array) -> jax.Array:
    return cache[table].sum() + params["up"].sum()


def features(params: Params, given: jax.Array) -> jax.Array:
    return (given.astype("float32") @ params["up"]).sum()


def ranks(params: Params, given: jax.Array) -> jax.Array:
    return params["embed"][given].sum()


@pytest.mark.parametrize(
    ("function", "inputs", "found"),
    [
        (language_model, [numbers(32, 128), numbers(32, 128)], ("tokens", (32, 128))),
        (one_hot, [numbers(16, 128), numbers(32, 128)], ("tokens", (32, 128))),
        (shifted, [numbers(32, 129)], ("tokens", (32, 129))),
        (micro_batches, [numbers(32, 128, dtype="uint16")], ("tokens", (32, 128))),
        (with_positions, [numbers(32, 128), numbers(32, 128)], ("tokens", (32, 128))),
        (encoder_and_decoder, [numbers(32, 128), numbers(32, 64)], None),
        (pages, [numbers(32, 128), jax.ShapeDtypeStruct((512, 16, 4, 64), "float32")], None),
        (features, [numbers(32, 64)], None),
        (ranks, [numbers(32)], None),
    ],
)
def test_tokens_are_what_is_looked_up_in_a_table(
    function: Callable[..., jax.Array], inputs: list[jax.ShapeDtypeStruct], found: tuple[str, tuple[int, int]] | None
) -> None:
    tokens = tokens_of(pyshardy.load(function, PARAMS, *inputs, mesh={"data": 4}).root)
    assert (None if tokens is None else (tokens.name, tokens.shape)) == found


def test_the_gradient_of_a_step_does_not_hide_them() -> None:
    module = pyshardy.load(jax.grad(language_model), PARAMS, numbers(32, 128), numbers(32, 128), mesh={"data": 4})
    cost = pyshardy.cost(module, "h100")
    assert cost.tokens is not None and cost.tokens.count == 32 * 128
    assert cost.tokens_per_second == cost.tokens.count / cost.step_seconds
    per_second = cost.to_json()["tokens"]["per_second"]
    assert per_second == cost.tokens_per_second and cost.to_json()["tokens"]["input"] == "tokens"
    figures = {row[""]: row["estimated"] for row in tables_in(str(cost))["time per step (estimated)"]}
    assert figures["tokens of `tokens` per second"] == f"{per_second / 1e6:.1f} M"
    assert figures["per device"] == f"{per_second / 4e6:.1f} M"


def test_without_tokens_no_rate_is_shown() -> None:
    module = pyshardy.load(features, PARAMS, numbers(32, 64), mesh={"data": 4})
    cost = pyshardy.cost(module, "h100")
    assert cost.tokens is None and cost.tokens_per_second is None
    assert "tokens" not in cost.to_json() and "tokens of" not in str(cost)
