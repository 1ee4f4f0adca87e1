"""Programs with jax-md: molecular dynamics."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from .base import f32, i32, key, lower, program


@program("jax_md")
def thermostat_steps() -> jax.stages.Lowered:
    """Lennard-Jones particles in a periodic box under a Nose-Hoover thermostat."""
    from jax_md import energy, simulate, space

    def run(rng, positions):
        displacement, shift = space.periodic(8.0)
        init, apply = simulate.nvt_nose_hoover(energy.lennard_jones_pair(displacement), shift, 1e-3, 1.0)
        state = init(rng, positions)
        return jax.lax.fori_loop(0, 4, lambda _, state: apply(state), state).position

    return lower(run, key(), f32(32, 3))


@program("jax_md")
def minimized_energy() -> jax.stages.Lowered:
    """Species with soft spheres, minimized by fire, with the stress of the box."""
    from jax_md import energy, minimize, space

    def run(positions, sigma):
        displacement, shift = space.periodic(8.0)
        species = np.arange(32) % 2
        function = energy.soft_sphere_pair(displacement, species=species, sigma=sigma)
        init, apply = minimize.fire_descent(function, shift)
        state = jax.lax.fori_loop(0, 4, lambda _, state: apply(state), init(positions))
        return state.position, jax.hessian(function)(state.position)

    return lower(run, f32(32, 2), f32(2, 2))


@program("jax_md")
def neighbor_forces() -> jax.stages.Lowered:
    """Forces by given lists of neighbours."""
    from jax_md import energy, space

    def run(positions, neighbors):
        displacement, _ = space.periodic(8.0)
        metric = space.map_neighbor(space.metric(displacement))

        def total(positions):
            mask = neighbors < positions.shape[0]
            distances = metric(positions, positions[jnp.minimum(neighbors, 31)])
            return 0.5 * jnp.sum(jnp.where(mask, energy.lennard_jones(distances), 0.0))

        return jax.value_and_grad(total)(positions)

    return lower(run, f32(32, 3), i32(32, 12))
