"""Training steps of a loss, for tests that need one and do not care which."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import jax


def descent(loss: Callable[..., Any], rate: float = 0.1) -> Callable[..., Any]:
    """A step of gradient descent: new parameters from those and a batch, named as the arguments of the loss."""

    @wraps(loss)
    def step(params: Any, *batch: Any) -> Any:
        return jax.tree.map(lambda p, g: p - rate * g, params, jax.grad(loss)(params, *batch))

    step.__name__ = step.__qualname__ = "step"
    return step


def descent_and_loss(loss: Callable[..., Any], rate: float = 0.1) -> Callable[..., Any]:
    """The same, which also returns the loss."""

    @wraps(loss)
    def step(params: Any, *batch: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, *batch)
        return jax.tree.map(lambda p, g: p - rate * g, params, gradients), value

    step.__name__ = step.__qualname__ = "step"
    return step
