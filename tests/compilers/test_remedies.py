"""Remedies for tensors that a compiler gathers whole are what a user would write: they hold for gradients, too."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.compilers.plugins import is_installed

MESH = jax.make_mesh((4, 2), ("fsdp", "context"), axis_types=(AxisType.Auto,) * 2)


def on(*spec: object) -> NamedSharding:
    return NamedSharding(MESH, P(*spec))


@pytest.mark.parametrize("platform, compiler", [("tpu", "tpu:v5e:2x4"), ("cuda", "cuda:h100:8")])
def test_one_constraint_mends_a_lookup_and_its_gradient(platform: str, compiler: str) -> None:
    if not is_installed(platform):
        pytest.skip(f"needs the compiler for {platform}")

    def loss(params: dict[str, jax.Array], tokens: jax.Array) -> jax.Array:
        x = params["embed"][tokens]
        x = jax.lax.with_sharding_constraint(jnp.tanh(x) * 2, on("fsdp", "context"))
        return (jnp.tanh(x @ params["w"]) ** 2).mean()

    params = {
        "embed": jax.ShapeDtypeStruct((2048, 512), "bfloat16", sharding=on(None, ("fsdp", "context"))),
        "w": jax.ShapeDtypeStruct((512, 512), "bfloat16", sharding=on("fsdp")),
    }
    tokens = jax.ShapeDtypeStruct((16, 256), "int32", sharding=on("fsdp", "context"))
    given = jax.tree.map(lambda one: one.sharding, params)
    step = jax.jit(jax.grad(loss), out_shardings=given)
    found = pyshardy.partition(pyshardy.load(step.lower(params, tokens)), compiler=compiler)
    assert len(found.replications) >= 2  # forward and backward
    (remedy,) = found.remedies()
    assert remedy.replicated_bytes[1] == 0 < remedy.replicated_bytes[0]
    assert remedy.sent_bytes[1] < remedy.sent_bytes[0]
    assert len(remedy.constraints) == 1 and "around the expression at " in remedy.constraints[0][0]
    assert "test_remedies.py:" in remedy.what_helps
