"""Programs with brax: physics, and learning on it."""

from __future__ import annotations

import jax

from .base import f32, key, lower, program

PENDULUM = """
<mujoco model="pendulum">
  <option timestep="0.01"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 0.1" pos="0 0 -2"/>
    <body name="cart" pos="0 0 0">
      <joint name="slide" type="slide" axis="1 0 0" damping="0.1"/>
      <geom type="capsule" size="0.1" fromto="-0.2 0 0 0.2 0 0"/>
      <body name="pole" pos="0 0 0">
        <joint name="hinge" type="hinge" axis="0 1 0" damping="0.05"/>
        <geom type="capsule" size="0.05" fromto="0 0 0 0 0 0.6"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="slide" gear="10"/></actuator>
</mujoco>
"""


def lower_rollout(backend) -> jax.stages.Lowered:
    """A batch of pendulums on carts, simulated for some steps."""
    from brax.io import mjcf

    system = mjcf.loads(PENDULUM)

    def simulate(position, velocity, actions):
        state = backend.init(system, position, velocity)
        final, heights = jax.lax.scan(lambda s, a: ((s := backend.step(system, s, a)), s.x.pos[:, 2]), state, actions)
        return final.q, final.qd, heights

    return lower(jax.vmap(simulate), f32(8, 2), f32(8, 2), f32(8, 4, 1))


@program("brax")
def spring_physics() -> jax.stages.Lowered:
    """Joints as springs, with contacts."""
    from brax.spring import pipeline

    return lower_rollout(pipeline)


@program("brax")
def positional_physics() -> jax.stages.Lowered:
    """Position-based dynamics."""
    from brax.positional import pipeline

    return lower_rollout(pipeline)


@program("brax")
def generalized_physics() -> jax.stages.Lowered:
    """Generalized coordinates, with a constraint solver."""
    from brax.generalized import pipeline

    return lower_rollout(pipeline)


@program("brax")
def policy_optimization_loss() -> jax.stages.Lowered:
    """The gradient of the loss of proximal policy optimization, with generalized advantages."""
    from brax.training.agents.ppo import losses, networks
    from brax.training.types import Transition

    network = networks.make_ppo_networks(12, 4, policy_hidden_layer_sizes=(32, 32), value_hidden_layer_sizes=(32,))
    params = losses.PPONetworkParams(
        policy=jax.eval_shape(network.policy_network.init, key()),
        value=jax.eval_shape(network.value_network.init, key()),
    )
    data = Transition(
        observation=f32(16, 8, 12),
        action=f32(16, 8, 4),
        reward=f32(16, 8),
        discount=f32(16, 8),
        next_observation=f32(16, 8, 12),
        extras={
            "policy_extras": {
                "raw_action": f32(16, 8, 4),
                "log_prob": f32(16, 8),
                "distribution_params": f32(16, 8, 8),
            },
            "state_extras": {"truncation": f32(16, 8)},
        },
    )

    def loss(params, data, rng):
        return losses.compute_ppo_loss(params, None, data, rng, network)[0]

    return lower(jax.value_and_grad(loss), params, data, key())
