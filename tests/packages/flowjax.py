"""Programs with flowjax: normalizing flows."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .base import f32, gradient_step, lower, program


def lower_step(make) -> jax.stages.Lowered:
    """A step of maximum likelihood on a flow, made of a key."""
    import equinox as eqx
    import paramax

    flow = make(jax.random.key(0))  # in earnest: permutations and masks are constants
    params, static = eqx.partition(flow, eqx.is_inexact_array)

    def loss(params, x):
        return -jnp.mean(paramax.unwrap(eqx.combine(params, static)).log_prob(x))

    return lower(gradient_step(loss), jax.eval_shape(lambda: params), f32(16, 8))


@program("flowjax")
def coupling_flow_step() -> jax.stages.Lowered:
    """Affine couplings, scanned over layers."""
    from flowjax import distributions, flows

    return lower_step(lambda k: flows.coupling_flow(k, base_dist=distributions.Normal(jnp.zeros(8)), flow_layers=4))


@program("flowjax")
def autoregressive_flow_step() -> jax.stages.Lowered:
    """Masked autoregressive layers with rational quadratic splines."""
    from flowjax import bijections, distributions, flows

    def make(k):
        spline = bijections.RationalQuadraticSpline(knots=4, interval=3)
        return flows.masked_autoregressive_flow(
            k, base_dist=distributions.StudentT(jnp.full(8, 4.0)), transformer=spline, flow_layers=2
        )

    return lower_step(make)


@program("flowjax")
def triangular_flow_step() -> jax.stages.Lowered:
    """Triangular matrices and splines with learned tails."""
    from flowjax import distributions, flows

    return lower_step(
        lambda k: flows.triangular_spline_flow(k, base_dist=distributions.Normal(jnp.zeros(8)), flow_layers=2)
    )
