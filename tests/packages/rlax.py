"""Programs with rlax: losses of reinforcement learning."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .base import f32, gradient_step, i32, lower, program


@program("rlax")
def double_q_learning_step() -> jax.stages.Lowered:
    """Double Q-learning with a target network and priorities."""
    import rlax

    def network(params, x):
        return jax.nn.relu(x @ params[0]) @ params[1]

    def loss(params, target, observed, actions, rewards, discounts, following, weights):
        values = network(params, observed), network(target, following), network(params, following)
        errors = jax.vmap(rlax.double_q_learning)(values[0], actions, rewards, discounts, values[1], values[2])
        return jnp.mean(weights * rlax.l2_loss(rlax.clip_gradient(errors, -1.0, 1.0)))

    params = [f32(12, 32), f32(32, 8)]
    return lower(gradient_step(loss), params, params, f32(16, 12), i32(16), f32(16), f32(16), f32(16, 12), f32(16))


@program("rlax")
def actor_critic_step() -> jax.stages.Lowered:
    """V-trace corrections, policy gradient and entropy, over trajectories."""
    import rlax

    def loss(params, observed, actions, rewards, discounts, behaviour):
        hidden = jnp.tanh(observed @ params["torso"])
        logits, values = hidden @ params["policy"], (hidden @ params["value"])[..., 0]

        def one(logits, values, actions, rewards, discounts, behaviour):
            rhos = rlax.categorical_importance_sampling_ratios(logits[:-1], behaviour, actions)
            result = rlax.vtrace_td_error_and_advantage(values[:-1], values[1:], rewards, discounts, rhos)
            weights = jnp.ones_like(rewards)
            policy = rlax.policy_gradient_loss(logits[:-1], actions, result.pg_advantage, weights)
            return policy + 0.5 * jnp.mean(result.errors**2) + rlax.entropy_loss(logits[:-1], weights)

        return jnp.mean(jax.vmap(one)(logits, values, actions, rewards, discounts, behaviour))

    params = {"torso": f32(12, 32), "policy": f32(32, 8), "value": f32(32, 1)}
    return lower(gradient_step(loss), params, f32(8, 17, 12), i32(8, 16), f32(8, 16), f32(8, 16), f32(8, 16, 8))


@program("rlax")
def distributional_loss() -> jax.stages.Lowered:
    """Categorical and quantile temporal differences, and their gradients."""
    import rlax

    def loss(logits, following, actions, rewards, discounts):
        atoms = jnp.linspace(-1, 1, 16)

        def one(logits, following, action, reward, discount):
            selector = jnp.mean(following, -1)
            categorical = rlax.categorical_double_q_learning(
                atoms, logits, action, reward, discount, atoms, following, selector
            )
            quantile = rlax.quantile_q_learning(
                logits.T, (jnp.arange(16) + 0.5) / 16, action, reward, discount, following.T, following.T, 1.0
            )
            return categorical + quantile

        return jnp.mean(jax.vmap(one)(logits, following, actions, rewards, discounts))

    return lower(jax.value_and_grad(loss), f32(8, 12, 16), f32(8, 12, 16), i32(8), f32(8), f32(8))
