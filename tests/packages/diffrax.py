"""Programs with diffrax: differential equations."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .base import f32, gradient_step, key, lower, program


@program("diffrax")
def adaptive_solve() -> jax.stages.Lowered:
    """A system of coupled oscillators by Tsitouras' method with adaptive steps, saved at given times."""
    import diffrax as dfx

    def run(coupling, start):
        solution = dfx.diffeqsolve(
            dfx.ODETerm(lambda t, y, args: jnp.sin(y @ args) - 0.1 * y),
            dfx.Tsit5(),
            t0=0.0,
            t1=1.0,
            dt0=0.1,
            y0=start,
            args=coupling,
            saveat=dfx.SaveAt(ts=jnp.linspace(0, 1, 8)),
            stepsize_controller=dfx.PIDController(rtol=1e-3, atol=1e-3),
            max_steps=64,
        )
        return solution.ys

    return lower(run, f32(16, 16), f32(8, 16))


@program("diffrax")
def neural_equation_step() -> jax.stages.Lowered:
    """A neural differential equation, trained through the solver with checkpoints."""
    import diffrax as dfx

    def loss(params, start, target):
        solution = dfx.diffeqsolve(
            dfx.ODETerm(lambda t, y, p: jnp.tanh(jnp.tanh(y @ p[0]) @ p[1])),
            dfx.Heun(),
            t0=0.0,
            t1=1.0,
            dt0=0.125,
            y0=start,
            args=params,
            max_steps=16,
        )
        return jnp.mean((solution.ys[-1] - target) ** 2)

    return lower(gradient_step(loss), (f32(16, 32), f32(32, 16)), f32(8, 16), f32(8, 16))


@program("diffrax")
def stochastic_solve() -> jax.stages.Lowered:
    """Stochastic differential equations on a virtual Brownian tree, one for every key."""
    import diffrax as dfx

    def one(scale, start, rng):
        noise = dfx.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=(16,), key=rng)
        terms = dfx.MultiTerm(
            dfx.ODETerm(lambda t, y, args: -y), dfx.ControlTerm(lambda t, y, args: jnp.diag(args * jnp.cos(y)), noise)
        )
        return dfx.diffeqsolve(terms, dfx.Euler(), 0.0, 1.0, dt0=0.1, y0=start, args=scale, max_steps=16).ys

    def run(scale, start, rng):
        return jax.vmap(one, (None, 0, 0))(scale, start, jax.random.split(rng, 8))

    return lower(run, f32(16), f32(8, 16), key())
