"""Programs with jaxopt: optimization."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .base import f32, lower, program


@program("jaxopt")
def quasi_newton() -> jax.stages.Lowered:
    """L-BFGS on a ridge regression."""
    import jaxopt

    def run(w, x, y):
        solver = jaxopt.LBFGS(lambda w: jnp.mean((x @ w - y) ** 2) + 0.1 * jnp.sum(w**2), maxiter=8, history_size=4)
        return solver.run(w).params

    return lower(run, f32(12, 8), f32(32, 12), f32(32, 8))


@program("jaxopt")
def projected_gradient() -> jax.stages.Lowered:
    """Projected gradient on the simplex, differentiated through its fixed point."""
    import jaxopt

    def loss(x, start):
        solver = jaxopt.ProjectedGradient(
            lambda w, x: jnp.mean((x @ w) ** 2), jaxopt.projection.projection_simplex, maxiter=8, implicit_diff=True
        )
        return jnp.sum(solver.run(start, x=x).params ** 2)

    return lower(jax.value_and_grad(loss), f32(16, 12), f32(12))


@program("jaxopt")
def lasso() -> jax.stages.Lowered:
    """Block coordinate descent and proximal gradient on a lasso."""
    import jaxopt

    def run(w, x, y):
        descent = jaxopt.BlockCoordinateDescent(jaxopt.objective.least_squares, jaxopt.prox.prox_lasso, maxiter=4)
        proximal = jaxopt.ProximalGradient(jaxopt.objective.least_squares, jaxopt.prox.prox_lasso, maxiter=4)
        first = descent.run(w, hyperparams_prox=0.1, data=(x, y)).params
        return first, proximal.run(first, hyperparams_prox=0.1, data=(x, y)).params

    return lower(run, f32(12), f32(32, 12), f32(32))
