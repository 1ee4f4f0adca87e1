"""Programs with e3nn-jax: networks that rotate with their inputs."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .base import f32, gradient_step, i32, key, lower, program


@program("e3nn_jax", "flax")
def equivariant_message_passing_step() -> jax.stages.Lowered:
    """Messages are tensor products with spherical harmonics, summed over neighbours, and gated."""
    import e3nn_jax as e3nn
    import flax.linen as nn

    class Model(nn.Module):
        @nn.compact
        def __call__(self, positions, features, senders, receivers):
            vectors = e3nn.IrrepsArray("1o", positions[receivers] - positions[senders])
            harmonics = e3nn.spherical_harmonics("0e + 1o + 2e", vectors, normalize=True)
            nodes = e3nn.IrrepsArray("8x0e", features)
            for _ in range(2):
                messages = e3nn.tensor_product(nodes[senders], harmonics, filter_ir_out=["0e", "1o"])
                summed = e3nn.scatter_sum(messages, dst=receivers, output_size=features.shape[0])
                nodes = e3nn.gate(e3nn.flax.Linear("8x0e + 4x0e + 4x1o")(summed))
            return e3nn.flax.Linear("0e")(nodes).array

    model = Model()
    data = f32(16, 3), f32(16, 8), i32(48), i32(48)
    params = jax.eval_shape(model.init, key(), *data)
    return lower(gradient_step(lambda params, *data: jnp.mean(model.apply(params, *data) ** 2)), params, *data)


@program("e3nn_jax")
def rotations() -> jax.stages.Lowered:
    """Fields on the sphere: rotated by quaternions, sampled on a grid, and brought back."""
    import e3nn_jax as e3nn

    def run(coefficients, quaternions):
        field = e3nn.IrrepsArray("0e + 1o + 2e", coefficients)
        rotated = field.transform_by_quaternion(quaternions)
        signal = e3nn.to_s2grid(rotated, 8, 7, quadrature="gausslegendre")
        back = e3nn.from_s2grid(signal.apply(jnp.tanh), "0e + 1o + 2e")
        return rotated.array, back.array

    return lower(run, f32(16, 9), f32(4))
