"""Programs with optimistix: roots, least squares, minima."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .base import f32, lower, program


@program("optimistix")
def least_squares() -> jax.stages.Lowered:
    """Levenberg and Marquardt on the parameters of a curve."""
    import optimistix as optx

    def residuals(params, data):
        x, y = data
        return jnp.tanh(x @ params["a"]) @ params["b"] - y

    def run(params, x, y):
        solver = optx.LevenbergMarquardt(rtol=1e-3, atol=1e-3)
        return optx.least_squares(residuals, solver, params, args=(x, y), max_steps=8, throw=False).value

    return lower(run, {"a": f32(8, 4), "b": f32(4)}, f32(32, 8), f32(32))


@program("optimistix")
def implicit_root() -> jax.stages.Lowered:
    """The gradient through a root found by Newton's method."""
    import optimistix as optx

    def loss(w, x):
        solver = optx.Newton(rtol=1e-3, atol=1e-3)
        root = optx.root_find(lambda y, w: y - jnp.tanh(w @ y) - x, solver, x, args=w, max_steps=8, throw=False)
        return jnp.sum(root.value**2)

    return lower(jax.value_and_grad(loss), f32(12, 12), f32(12))


@program("optimistix")
def minimum() -> jax.stages.Lowered:
    """BFGS on a batch of problems."""
    import optimistix as optx

    def one(start, target):
        solver = optx.BFGS(rtol=1e-3, atol=1e-3)
        return optx.minimise(
            lambda y, target: jnp.sum((y**2 - target) ** 2), solver, start, args=target, max_steps=8, throw=False
        ).value

    return lower(jax.vmap(one), f32(8, 12), f32(8, 12))
