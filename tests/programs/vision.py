"""Convolutions, pooling, normalization and resizing."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from support.steps import descent_and_loss

from .base import constant, integers, normal, program, weight

LAYOUT = ("NHWC", "HWIO", "NHWC")


def conv(x, kernel, stride: int = 1, **options):
    return lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=LAYOUT, **options)


def normalize(x, scale, shift):
    """Batch normalization by the statistics of the batch, which are also given."""
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) * lax.rsqrt(variance + 1e-3) * scale + shift, (mean, variance)


def max_pool(x, size: int = 2):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, size, size, 1), "VALID")


def average_pool(x, size: int = 2):
    return lax.reduce_window(x, 0.0, lax.add, (1, size, size, 1), (1, size, size, 1), "SAME") / size**2


def cross_entropy(logits, labels):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(labels, logits.shape[-1]), axis=-1))


@program(data=4, model=2)
def cnn_training(mesh: Mesh) -> tuple[Any, ...]:
    """Two convolutions with batch norm, max and average pooling, and running statistics."""

    def loss(params, x, labels):
        x, first = normalize(conv(x, params["conv1"]), *params["norm1"])
        x = jax.nn.relu(max_pool(x))
        x, second = normalize(conv(x, params["conv2"]), *params["norm2"])
        x = average_pool(jax.nn.relu(x)).reshape(x.shape[0], -1)
        return cross_entropy(x @ params["dense"], labels), (first, second)

    def step(params, running, x, labels):
        (value, statistics), gradients = jax.value_and_grad(loss, has_aux=True)(params, x, labels)
        running = jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new, running, statistics)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), running, value

    params = {
        "conv1": weight(3, 3, 3, 8),
        "norm1": (constant(1, 8), constant(0, 8)),
        "conv2": weight(3, 3, 8, 16),
        "norm2": (constant(1, 16), constant(0, 16)),
        "dense": weight(4 * 4 * 16, 10),
    }
    running = ((constant(0, 8), constant(1, 8)), (constant(0, 16), constant(1, 16)))
    specs = dict.fromkeys(params) | {"conv2": P(None, None, None, "model")}
    return step, (params, running, normal(8, 16, 16, 3), integers(8, high=10)), (specs, None, P("data"), P("data"))


@program(data=4, model=2)
def resnet_block(mesh: Mesh) -> tuple[Any, ...]:
    """A residual block with a strided convolution and a strided projection, and all its gradients."""

    def loss(params, x, labels):
        y = jax.nn.relu(normalize(conv(x, params["down"], 2), *params["norm"])[0])
        y = jax.lax.with_sharding_constraint(y, NamedSharding(mesh, P("data", None, None, "model")))
        y = jax.nn.relu(conv(y, params["same"]) + conv(x, params["project"], 2))
        return cross_entropy(y.mean((1, 2)) @ params["dense"], labels)

    params = {
        "down": weight(3, 3, 8, 16),
        "norm": (constant(1, 16), constant(0, 16)),
        "same": weight(3, 3, 16, 16),
        "project": weight(1, 1, 8, 16),
        "dense": weight(16, 4),
    }
    gradients = jax.value_and_grad(loss, argnums=(0, 1))
    return gradients, (params, normal(8, 8, 8, 8), integers(8, high=4)), (None, P("data"), None)


@program(data=2, space=4)
def spatial_convolution(mesh: Mesh) -> tuple[Any, ...]:
    """Images split by rows: depthwise, dilated and strided convolutions, whose windows reach over shard borders."""

    def run(kernels, x):
        x = conv(x, kernels["full"])
        x = jax.nn.gelu(conv(x, kernels["depthwise"], feature_group_count=8))
        x = x + conv(x, kernels["dilated"], rhs_dilation=(2, 2))
        return conv(x, kernels["strided"], 2), max_pool(x)

    kernels = {
        "full": weight(5, 5, 3, 8),
        "depthwise": weight(3, 3, 1, 8),
        "dilated": weight(3, 3, 8, 8),
        "strided": weight(3, 3, 8, 4),
    }
    return run, (kernels, normal(4, 16, 16, 3)), (None, P("data", "space"))


@program(data=4, model=2)
def gan_training(mesh: Mesh) -> tuple[Any, ...]:
    """A generator of transposed convolutions against a strided discriminator; one update of each."""

    def generate(params, noise):
        x = jax.nn.relu(noise @ params["dense"]).reshape(-1, 4, 4, 16)
        x = jax.nn.relu(lax.conv_transpose(x, params["up1"], (2, 2), "SAME", dimension_numbers=LAYOUT))
        return jnp.tanh(lax.conv_transpose(x, params["up2"], (2, 2), "SAME", dimension_numbers=LAYOUT))

    def judge(params, x):
        x = jax.nn.leaky_relu(conv(x, params["down1"], 2), 0.2)
        x = jax.nn.leaky_relu(conv(x, params["down2"], 2), 0.2)
        return x.reshape(x.shape[0], -1) @ params["dense"]

    def step(generator, critic, noise, images):
        def critic_loss(critic):
            fake = lax.stop_gradient(generate(generator, noise))
            return jnp.mean(jax.nn.softplus(judge(critic, fake)) + jax.nn.softplus(-judge(critic, images)))

        def generator_loss(generator):
            return jnp.mean(jax.nn.softplus(-judge(critic, generate(generator, noise))))

        updates = jax.grad(generator_loss)(generator), jax.grad(critic_loss)(critic)
        return jax.tree.map(lambda p, g: p - 0.1 * g, (generator, critic), updates)

    generator = {"dense": weight(8, 256), "up1": weight(4, 4, 16, 8), "up2": weight(4, 4, 8, 3)}
    critic = {"down1": weight(4, 4, 3, 8), "down2": weight(4, 4, 8, 16), "dense": weight(256, 1)}
    inputs = (generator, critic, normal(8, 8), normal(8, 16, 16, 3))
    return step, inputs, ({"dense": P(None, "model"), "up1": None, "up2": None}, None, P("data"), P("data"))


@program(data=4, model=2)
def unet(mesh: Mesh) -> tuple[Any, ...]:
    """Down and up sampling with skip connections by concatenation; resizing by interpolation; with gradient."""

    def forward(params, x):
        outer = jax.nn.silu(conv(x, params["enter"]))
        inner = jax.nn.silu(conv(average_pool(outer), params["down"]))
        batch, height, width, channels = inner.shape
        up = jax.image.resize(inner, (batch, 2 * height, 2 * width, channels), "bilinear")
        nearest = jnp.repeat(jnp.repeat(inner, 2, axis=1), 2, axis=2)
        return conv(jnp.concatenate([outer, up, nearest], axis=-1), params["leave"])

    def loss(params, x, y):
        return jnp.mean((forward(params, x) - y) ** 2)

    params = {"enter": weight(3, 3, 3, 8), "down": weight(3, 3, 8, 16), "leave": weight(3, 3, 40, 3)}
    specs = {"enter": None, "down": P(None, None, None, "model"), "leave": None}
    return descent_and_loss(loss), (params, normal(4, 8, 8, 3), normal(4, 8, 8, 3)), (specs, P("data"), P("data"))
