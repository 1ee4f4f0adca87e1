"""Programs with distrax: distributions and bijectors."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .base import f32, gradient_step, i32, key, lower, program


@program("distrax")
def mixture_step() -> jax.stages.Lowered:
    """A mixture of Gaussians fitted by gradient descent."""
    import distrax

    def loss(params, x):
        components = distrax.MultivariateNormalDiag(params["mean"], jnp.exp(params["log_scale"]))
        mixture = distrax.MixtureSameFamily(distrax.Categorical(params["logits"]), components)
        return -mixture.log_prob(x).mean()

    return lower(gradient_step(loss), {"mean": f32(12, 8), "log_scale": f32(12, 8), "logits": f32(12)}, f32(16, 8))


@program("distrax")
def coupling_flow_step() -> jax.stages.Lowered:
    """Masked couplings with rational quadratic splines."""
    import distrax

    def loss(params, x):
        layers = []
        for index, (hidden, weight) in enumerate(params):

            def conditioner(y, hidden=hidden, weight=weight):
                return (jnp.tanh(y @ hidden) @ weight).reshape(*y.shape, 13)  # for four bins

            def bijector(p):
                return distrax.RationalQuadraticSpline(p, range_min=-3.0, range_max=3.0)

            layers.append(distrax.MaskedCoupling((jnp.arange(8) + index) % 2 == 0, conditioner, bijector))
        flow = distrax.Inverse(distrax.Chain(layers))
        base = distrax.MultivariateNormalDiag(jnp.zeros(8), jnp.ones(8))
        return -distrax.Transformed(base, flow).log_prob(x).mean()

    return lower(gradient_step(loss), [(f32(8, 32), f32(32, 104)), (f32(8, 32), f32(32, 104))], f32(16, 8))


@program("distrax")
def hidden_markov_model() -> jax.stages.Lowered:
    """The forward-backward and Viterbi algorithms of a hidden Markov model."""
    import distrax

    def run(start, transitions, means, observed):
        model = distrax.HMM(
            distrax.Categorical(start), distrax.Categorical(transitions), distrax.Normal(means, jnp.ones(means.shape))
        )
        return model.forward_backward(observed), model.viterbi(observed)

    return lower(run, f32(12), f32(12, 12), f32(12), f32(16))


@program("distrax")
def policy_samples() -> jax.stages.Lowered:
    """Samples, entropies and divergences of squashed and of discrete distributions."""
    import distrax

    def run(mean, logits, actions, rng):
        squashed = distrax.Transformed(distrax.Normal(mean, jnp.ones_like(mean)), distrax.Tanh())
        discrete = distrax.Categorical(logits)
        drawn = squashed.sample_and_log_prob(seed=rng)
        return drawn, discrete.log_prob(actions), discrete.entropy(), discrete.kl_divergence(distrax.Softmax(mean))

    return lower(run, f32(16, 12), f32(16, 12), i32(16), key())
