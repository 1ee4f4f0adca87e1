"""Loops, branches, and functions that call functions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from .base import integers, normal, program, uniform, weight


@program(x=4, y=2)
def power_iteration(mesh: Mesh) -> tuple[Any, ...]:
    """The dominant eigenvector by a while loop that ends when it stands still."""

    def run(matrix, start):
        def moving(state):
            vector, previous, count = state
            return (jnp.max(jnp.abs(vector - previous)) > 1e-6) & (count < 50)

        def advance(state):
            vector, _, count = state
            new = matrix @ vector
            return new / jnp.linalg.norm(new), vector, count + 1

        vector, _, _ = jax.lax.while_loop(moving, advance, (start, jnp.zeros_like(start), 0))
        return vector, vector @ matrix @ vector

    return run, (uniform(16, 16, low=0.9, high=1.1), uniform(16, low=0.1)), (P("x", "y"), None)


@program(data=8)
def newton(mesh: Mesh) -> tuple[Any, ...]:
    """Cube roots by Newton's method, mapped over a batch: a while loop with one predicate per element."""

    def root(target):
        def far(x):
            return jnp.abs(x**3 - target) > 1e-3

        return jax.lax.while_loop(far, lambda x: x - (x**3 - target) / (3 * x**2), target)

    def run(targets, scale):
        roots = jax.vmap(root)(targets)
        total = jax.lax.fori_loop(0, 3, lambda i, total: total + roots * scale[i], jnp.zeros_like(roots))
        return roots, total

    return run, (uniform(16, low=1, high=8), normal(3)), (P("data"), None)


@program(data=4, model=2)
def branches(mesh: Mesh) -> tuple[Any, ...]:
    """cond and switch whose branches use sharded values from outside, and the gradient through them."""
    rows = NamedSharding(mesh, P("data"))

    def loss(w, x, choice):
        hidden = jax.lax.switch(
            choice,
            [lambda: x @ w, lambda: jnp.tanh(x) @ w, lambda: jax.lax.with_sharding_constraint(x @ w.T @ w, rows)],
        )
        large = jnp.mean(x) > -10
        return jnp.sum(jax.lax.cond(large, lambda h: h * 2, lambda h: -h, hidden) ** 2)

    inputs = (weight(16, 16), normal(8, 16), integers(high=3))
    return jax.value_and_grad(loss), inputs, (P(None, "model"), P("data"), None)


@program(x=4, y=2)
def nested_jit(mesh: Mesh) -> tuple[Any, ...]:
    """Inner jitted functions with shardings of their own, called several times, also from within one another."""
    rows, columns = NamedSharding(mesh, P("x", None)), NamedSharding(mesh, P(None, "y"))
    inner = jax.jit(lambda a: jnp.sin(a) * 2, in_shardings=rows, out_shardings=columns)

    @jax.jit
    def middle(a, w):
        return inner(a @ w) + inner(a) @ w

    def outer(a, w):
        once = middle(a, w)
        twice, _ = jax.lax.scan(lambda carry, _: (middle(carry, w), None), once, length=2)
        return inner(once) - twice, jax.grad(lambda a: middle(a, w).sum())(a)

    return outer, (normal(8, 16), weight(16, 16)), (P("x"), None), (None, P(None, ("x", "y")))


@program(x=2, y=4)
def unconstrained(mesh: Mesh) -> tuple[Any, ...]:
    """Constraints that leave some dimensions open, and one value constrained differently for two uses."""

    def run(a, b):
        def constrain(value, *spec):
            return jax.lax.with_sharding_constraint(value, NamedSharding(mesh, P(*spec)))

        product = constrain(a @ b, P.UNCONSTRAINED, "y")
        rows, columns = constrain(product, "x", None), constrain(product, None, ("y", "x"))
        return constrain(rows + 1, P.UNCONSTRAINED, P.UNCONSTRAINED), columns * 2, (rows * columns).sum()

    return run, (normal(8, 16), normal(16, 32)), (P("x"), None)
