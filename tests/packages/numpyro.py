"""Programs with numpyro: sampling and variational inference."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .base import f32, i32, key, lower, program


def regression(x, y=None):
    """A logistic regression with a prior on the scale of its weights."""
    import numpyro
    from numpyro import distributions as dist

    scale = numpyro.sample("scale", dist.HalfCauchy(1.0))
    weights = numpyro.sample("weights", dist.Normal(0, scale).expand([x.shape[1]]).to_event(1))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=x @ weights), obs=y)


@program("numpyro")
def no_u_turn_step() -> jax.stages.Lowered:
    """One step of the no-U-turn sampler, whose tree is built in loops within loops."""
    from numpyro.infer import NUTS

    def run(rng, x, y):
        kernel = NUTS(regression, max_tree_depth=3)
        state = kernel.init(rng, 4, None, (x,), {"y": y})
        return kernel.sample(state, (x,), {"y": y}).z

    return lower(run, key(), f32(32, 12), f32(32))


@program("numpyro")
def variational_step() -> jax.stages.Lowered:
    """A step of stochastic variational inference with a guide of full covariance."""
    from numpyro.infer import SVI, Trace_ELBO
    from numpyro.infer.autoguide import AutoMultivariateNormal
    from numpyro.optim import Adam

    def run(rng, x, y):
        guide = AutoMultivariateNormal(regression)
        inference = SVI(regression, guide, Adam(1e-2), Trace_ELBO(num_particles=4))
        state = inference.init(rng, x, y)
        return inference.get_params(inference.update(state, x, y)[0])

    return lower(run, key(), f32(32, 12), f32(32), platform="tpu")


@program("numpyro")
def markov_model_density() -> jax.stages.Lowered:
    """The density of a state-space model with `scan`, and its gradient."""
    import numpyro
    from numpyro import distributions as dist
    from numpyro.contrib.control_flow import scan
    from numpyro.infer.util import log_density

    def model(observed):
        decay = numpyro.sample("decay", dist.Beta(2, 2).expand([8]).to_event(1))

        def transition(state, value):
            state = numpyro.sample("state", dist.Normal(decay * state, jnp.ones(8)).to_event(1))
            numpyro.sample("value", dist.Laplace(state, jnp.ones(8)).to_event(1), obs=value)
            return state, state

        scan(transition, jnp.zeros(8), observed)

    def density(params, observed):
        return log_density(model, (observed,), {}, params)[0]

    return lower(jax.value_and_grad(density), {"decay": f32(8), "state": f32(16, 8)}, f32(16, 8))


@program("numpyro")
def topic_predictions() -> jax.stages.Lowered:
    """Draws from the prior of a model with Dirichlet and gamma-Poisson variables."""
    import numpyro
    from numpyro import distributions as dist
    from numpyro.infer import Predictive

    def model(documents):
        topics = numpyro.sample("topics", dist.Dirichlet(jnp.ones(12)).expand([8]).to_event(1))
        rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
        with numpyro.plate("documents", documents.shape[0]):
            numpyro.sample("length", dist.Poisson(rate))
            numpyro.sample("word", dist.Categorical(topics[documents]))

    return lower(lambda rng, documents: Predictive(model, num_samples=4)(rng, documents), key(), i32(16))
