"""What a program of a published package is: a function that lowers it, and the packages it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp


@dataclass(frozen=True)
class Program:
    """A JAX program written with published packages, lowered on abstract arguments."""

    name: str
    packages: tuple[str, ...]
    """The packages that it imports, by their names in Python; the first is the one that it is about."""
    lower: Callable[[], jax.stages.Lowered]

    def missing(self) -> list[str]:
        """The packages that are not installed. One that is installed and cannot be imported is not missing."""
        return [package for package in self.packages if find_spec(package) is None]


def program(*packages: str) -> Callable[[Callable[[], jax.stages.Lowered]], Program]:
    """Turn the decorated function into a `Program`, called after its first package and itself."""
    return lambda lower: Program(f"{packages[0]}.{lower.__name__}", packages, lower)


def lower(fn: Callable[..., Any], *args: Any, platform: str | None = None) -> jax.stages.Lowered:
    """The function lowered on trees of abstract arguments, for the CPU or for a platform that need not be at hand."""
    return jax.jit(fn).trace(*args).lower(lowering_platforms=(platform,) if platform else None)


def f32(*shape: int) -> jax.ShapeDtypeStruct:
    """A float array of this shape."""
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def i32(*shape: int) -> jax.ShapeDtypeStruct:
    """An integer array of this shape."""
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def key() -> jax.ShapeDtypeStruct:
    """A PRNG key of the old kind, which every package takes."""
    return jax.ShapeDtypeStruct((2,), jnp.uint32)


def gradient_step(loss: Callable[..., Any], rate: float = 0.1) -> Callable[..., Any]:
    """A step of gradient descent on a loss of parameters and data."""

    def step(params: Any, *data: Any) -> tuple[Any, Any]:
        value, gradients = jax.value_and_grad(loss)(params, *data)
        return jax.tree.map(lambda p, g: p - rate * g, params, gradients), value

    return step


def optimizer_step(loss: Callable[..., Any], optimizer: Any) -> Callable[..., Any]:
    """A step of an optax optimizer on a loss of parameters and data; takes and gives its state."""
    import optax

    def step(params: Any, state: Any, *data: Any) -> tuple[Any, Any, Any]:
        value, gradients = jax.value_and_grad(loss)(params, *data)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    return step
