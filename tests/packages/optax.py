"""Programs with optax: optimizers that treat tensors differently, and losses."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .base import f32, i32, lower, optimizer_step, program

PARAMS = {"w1": f32(16, 32), "b1": f32(32), "w2": f32(32, 8)}


def regression_loss(params, x, y):
    """The mean squared error of a perceptron."""
    return jnp.mean((jnp.tanh(x @ params["w1"] + params["b1"]) @ params["w2"] - y) ** 2)


def lower_step(optimizer) -> jax.stages.Lowered:
    """A step of that optimizer on a perceptron."""
    state = jax.eval_shape(optimizer.init, PARAMS)
    return lower(optimizer_step(regression_loss, optimizer), PARAMS, state, f32(8, 16), f32(8, 8))


@program("optax")
def factored_moments() -> jax.stages.Lowered:
    """Adafactor: second moments by rows and columns."""
    import optax

    return lower_step(optax.adafactor(1e-2, min_dim_size_to_factor=8))


@program("optax")
def orthogonalized_updates() -> jax.stages.Lowered:
    """Muon: matrices by Newton and Schulz, the rest by adam."""
    import optax

    return lower_step(optax.contrib.muon(1e-2))


@program("optax")
def trust_ratios() -> jax.stages.Lowered:
    """Lamb with decay on matrices alone and a mean of several steps, which is a conditional."""
    import optax

    lamb = optax.lamb(1e-2, weight_decay=0.1, mask={"w1": True, "b1": False, "w2": True})
    return lower_step(optax.MultiSteps(lamb, 4).gradient_transformation())


@program("optax")
def mixture_of_optimizers() -> jax.stages.Lowered:
    """Different optimizers for parts of the parameters, skipping steps that are not finite."""
    import optax

    parts = {"a": optax.lion(1e-3), "b": optax.chain(optax.add_noise(0.1, 0.5, 0), optax.rmsprop(1e-3, centered=True))}
    return lower_step(optax.apply_if_finite(optax.multi_transform(parts, {"w1": "a", "b1": "b", "w2": "b"}), 4))


@program("optax")
def line_search() -> jax.stages.Lowered:
    """L-BFGS with a zoom line search: a loop within a loop."""
    import optax

    optimizer = optax.lbfgs(memory_size=4)

    def step(params, state, x, y):
        def loss(params):
            return regression_loss(params, x, y)

        value, gradients = optax.value_and_grad_from_state(loss)(params, state=state)
        updates, state = optimizer.update(gradients, state, params, value=value, grad=gradients, value_fn=loss)
        return optax.apply_updates(params, updates), state

    return lower(step, PARAMS, jax.eval_shape(optimizer.init, PARAMS), f32(8, 16), f32(8, 8))


@program("optax")
def sequence_losses() -> jax.stages.Lowered:
    """The gradient of connectionist temporal classification, and of losses on rows."""
    import optax

    def loss(logits, lengths, labels):
        padding = (jnp.arange(16) >= lengths[:, None]).astype(jnp.float32)
        ctc = optax.ctc_loss(logits, padding, labels, jnp.zeros(labels.shape))
        focal = optax.sigmoid_focal_loss(logits[:, 0], jax.nn.one_hot(labels[:, 0], 12))
        cosine = optax.cosine_distance(logits[:, 0], logits[:, 1])
        return ctc.mean() + focal.mean() + cosine.mean() + optax.huber_loss(logits).mean()

    return lower(jax.value_and_grad(loss), f32(8, 16, 12), i32(8), i32(8, 4))
