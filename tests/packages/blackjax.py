"""Programs with blackjax: Markov chains and particles."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .base import f32, key, lower, program


def log_density(position, x, y):
    """A logistic regression's."""
    logits = x @ position["weights"] + position["bias"]
    return -jnp.sum(jnp.logaddexp(0, -y * logits)) - 0.5 * sum(jnp.sum(p**2) for p in jax.tree.leaves(position))


POSITION = {"weights": f32(8, 12), "bias": f32(8)}
DATA = f32(32, 12), f32(32)


@program("blackjax")
def hamiltonian_chains() -> jax.stages.Lowered:
    """Several chains of Hamiltonian Monte Carlo, scanned."""
    import blackjax

    def run(rng, positions, x, y):
        kernel = blackjax.hmc(lambda p: log_density(p, x, y), 1e-2, jnp.ones(13), num_integration_steps=4)
        states = jax.vmap(kernel.init)(positions)

        def step(states, rng):
            states, info = jax.vmap(kernel.step)(jax.random.split(rng, 8), states)
            return states, info.acceptance_rate

        return jax.lax.scan(step, states, jax.random.split(rng, 4))

    return lower(run, key(), POSITION, *DATA)


@program("blackjax")
def no_u_turn_chains() -> jax.stages.Lowered:
    """A step of the no-U-turn sampler on several chains."""
    import blackjax

    def run(rng, positions, x, y):
        kernel = blackjax.nuts(lambda p: log_density(p, x, y), 1e-2, jnp.ones(13), max_num_doublings=3)
        return jax.vmap(lambda rng, p: kernel.step(rng, kernel.init(p))[0])(jax.random.split(rng, 8), positions)

    return lower(run, key(), POSITION, *DATA)


@program("blackjax")
def tempered_particles() -> jax.stages.Lowered:
    """A step of sequential Monte Carlo with adaptive tempering: resampling and a root search."""
    import blackjax
    from blackjax.smc import resampling

    def run(rng, particles, x, y):
        kernel = blackjax.adaptive_tempered_smc(
            lambda p: -0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(p)),
            lambda p: log_density(p, x, y),
            blackjax.hmc.build_kernel(),
            blackjax.hmc.init,
            {
                "step_size": jnp.full(1, 1e-2),
                "inverse_mass_matrix": jnp.ones((1, 13)),
                "num_integration_steps": jnp.full(1, 2),
            },
            resampling.systematic,
            0.5,
            num_mcmc_steps=2,
        )
        return kernel.step(rng, kernel.init(particles))[0].particles

    return lower(run, key(), POSITION, *DATA)


@program("blackjax")
def langevin_dynamics() -> jax.stages.Lowered:
    """Stochastic gradient Langevin dynamics on batches of data."""
    import blackjax

    def run(rng, position, x, y):
        sampler = blackjax.sgld(jax.grad(lambda p, batch: log_density(p, *batch)))

        def step(position, inputs):
            rng, batch = inputs
            return sampler.step(rng, position, batch, 1e-3), None

        return jax.lax.scan(step, position, (jax.random.split(rng, 4), (x, y)))[0]

    position = {"weights": f32(12), "bias": f32()}
    return lower(run, key(), position, f32(4, 8, 12), f32(4, 8))
