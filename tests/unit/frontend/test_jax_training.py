"""Micro-batches and policies of rematerialization compute what the function computes, and say how they are written."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pyshardy.errors import UsageError
from pyshardy.frontend.jax_training import Applied, Training, remat_policies, trained

KEY = jax.random.key(0)
PARAMS = {"up": jax.random.normal(KEY, (3, 8, 16)) / 8, "down": jax.random.normal(KEY, (3, 16, 8)) / 8}
X = jax.random.normal(KEY, (24, 8))


def layer(x: Any, w: Any) -> Any:
    return x + jnp.tanh(x @ w["up"]) @ w["down"]


def scanned(params: Any, x: Any, y: Any) -> Any:
    x, _ = jax.lax.scan(lambda x, w: (layer(x, w), None), x, params)
    return jnp.mean((x - y) ** 2)


def checkpointed(params: Any, x: Any, y: Any) -> Any:
    for at in range(3):
        block = jax.checkpoint(layer, policy=jax.checkpoint_policies.everything_saveable)
        x = block(x, jax.tree.map(lambda leaf, at=at: leaf[at], params))
    return jnp.mean((x - y) ** 2)


def step_of(loss: Callable[..., Any]) -> Any:
    @jax.jit
    def step(params: Any, x: Any, y: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

    return step


def seen(step: Any, *arguments: Any) -> Applied:
    with trained(Training()) as before:
        step.lower(*arguments)
    return before


@pytest.mark.parametrize("loss", [scanned, checkpointed])
@pytest.mark.parametrize(
    "training",
    [Training(4), Training(1, "nothing_saveable"), Training(3, "dots_saveable"), Training(2, "everything_saveable")],
)
def test_the_numbers_stay(loss: Callable[..., Any], training: Training) -> None:
    step = step_of(loss)
    expected = step(PARAMS, X, X / 2)
    with trained(training, seen(step, PARAMS, X, X)) as applied:
        found = step(PARAMS, X, X / 2)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-6), found, expected)
    assert applied.batch == (24 if training.microbatches > 1 else 0)
    again = step(PARAMS, X, X / 2)  # as it is written, once more
    jax.tree.map(np.testing.assert_array_equal, again, expected)


def test_the_comparison_sees_another_gradient() -> None:
    step = step_of(scanned)
    with trained(Training(4), seen(step, PARAMS, X, X)):
        found = step(PARAMS, X, X)
    with pytest.raises(AssertionError):
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-6), found, step(PARAMS, X, X / 2))


@pytest.mark.parametrize(
    ("loss", "remat", "checkpoints"),
    [(scanned, "nothing_saveable", 1), (checkpointed, "dots_saveable", 3), (checkpointed, "everything_saveable", 0)],
)
def test_policies_are_those_of_the_calls_or_of_the_bodies_of_scans(
    loss: Callable[..., Any], remat: str, checkpoints: int
) -> None:
    step = step_of(loss)
    before = seen(step, PARAMS, X, X)
    with trained(Training(1, remat), before):
        text = str(jax.make_jaxpr(step)(PARAMS, X, X))
    assert text.count("policy=") == checkpoints


def test_gradients_alone_and_auxiliary_numbers() -> None:
    def loss(params: Any, x: Any) -> Any:
        return jnp.mean((x @ params) ** 2), {"largest": jnp.max(x), "count": jnp.int32(3)}

    def step(params: Any, x: Any) -> Any:
        return jax.grad(loss, has_aux=True)(params, x)

    w = jnp.eye(8)
    expected, aux = step(w, X)
    with trained(Training(4), Applied(gradients=1)):
        found, numbers = step(w, X)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert int(numbers["count"]) == int(aux["count"]) and numbers["largest"] <= aux["largest"]


def test_other_positions_and_arguments_by_name() -> None:
    def step(x: Any, params: Any) -> Any:
        return jax.value_and_grad(lambda x, p, *, y: jnp.mean((x @ p - y) ** 2), argnums=1)(x, params, y=x)

    expected = step(X, jnp.ones((8, 8)))
    with trained(Training(2), Applied(gradients=1)):
        found = step(X, jnp.ones((8, 8)))
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5), found, expected)


def rows_returned(params: Any, x: Any) -> Any:
    return jax.value_and_grad(lambda p, x: (jnp.mean(x @ p), x @ p), has_aux=True)(params, x)


def batch_enclosed(params: Any, x: Any) -> Any:
    return jax.grad(lambda p: jnp.mean(x @ p))(params)


def without(params: Any, x: Any) -> Any:
    return jnp.mean(x @ params)


@pytest.mark.parametrize(
    ("step", "training", "needed"),
    [
        (rows_returned, Training(2), "needed a loss whose results do not depend on the size of the batch"),
        (batch_enclosed, Training(2), "needed a loss that takes the batch as an argument"),
        (without, Training(2), "needed a function that calls jax.grad or jax.value_and_grad"),
        (without, Training(1, "dots_saveable"), "needed a function that calls jax.checkpoint, or whose layers are in"),
        (step_of(scanned), Training(5), "5 micro-batches of a batch of 24, needed a divisor of 24"),
    ],
)
def test_what_cannot_train_otherwise_is_refused(step: Any, training: Training, needed: str) -> None:
    arguments = (PARAMS, X, X) if step not in (rows_returned, batch_enclosed, without) else (jnp.ones((8, 8)), X)
    before = seen(jax.jit(step), *arguments)
    with pytest.raises(UsageError, match=needed), trained(training, before):
        jax.make_jaxpr(step)(*arguments)
    assert jax.grad.__module__.startswith("jax")


@pytest.mark.parametrize(
    ("keywords", "needed"), [({"microbatches": 0}, "a number from 1"), ({"remat": "dots"}, "a policy of")]
)
def test_ways_that_do_not_exist_are_refused(keywords: Any, needed: str) -> None:
    with pytest.raises(UsageError, match=needed):
        Training(**keywords)


def test_how_they_are_written() -> None:
    assert "nothing_saveable" in remat_policies() and "save_only_these_names" not in remat_policies()
    rows, policy = Applied(batch=24).how(Training(4, "dots_saveable"))
    assert "x.reshape(6, 4, *x.shape[1:]).swapaxes(0, 1)" in rows and policy.endswith("around the body of the scan")
    (own,) = Applied(checkpoints=2).how(Training(1, "dots_saveable"))
    assert own == "remat: jax.checkpoint(..., policy=jax.checkpoint_policies.dots_saveable)"
    assert Applied().how(Training(1, "everything_saveable")) == ["remat: leave jax.checkpoint out"]
