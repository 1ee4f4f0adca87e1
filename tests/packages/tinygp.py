"""Programs with tinygp: Gaussian processes."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .base import f32, gradient_step, lower, program


@program("tinygp")
def likelihood_step() -> jax.stages.Lowered:
    """The likelihood of a process with a product of kernels, and a step on its parameters."""
    from tinygp import GaussianProcess, kernels, transforms

    def loss(params, x, y):
        kernel = jnp.exp(params["amplitude"]) * transforms.Linear(params["scale"], kernels.Matern32())
        process = GaussianProcess(kernel + kernels.RationalQuadratic(alpha=1.5), x, diag=0.1)
        return -process.log_probability(y)

    params = {"amplitude": f32(), "scale": f32(8, 8)}
    return lower(gradient_step(loss), params, f32(32, 8), f32(32), platform="tpu")


@program("tinygp")
def predictions() -> jax.stages.Lowered:
    """Means and variances at new points, given observations."""
    from tinygp import GaussianProcess, kernels

    def run(x, y, new):
        process = GaussianProcess(kernels.ExpSquared(1.5), x, diag=0.1)
        conditioned = process.condition(y, new).gp
        return conditioned.loc, conditioned.variance

    return lower(run, f32(32, 8), f32(32), f32(16, 8))


@program("tinygp")
def quasiseparable_likelihood() -> jax.stages.Lowered:
    """A process in one dimension in linear time, by scans."""
    from tinygp import GaussianProcess, kernels

    def run(times, y):
        return GaussianProcess(kernels.quasisep.Matern52(1.5), times, diag=0.1, assume_sorted=True).log_probability(y)

    return lower(jax.value_and_grad(run, 1), f32(32), f32(32))
