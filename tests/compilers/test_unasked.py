"""A function that was lowered for a TPU or GPU is taken to its compiler without being told to."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.compilers.plugins import is_installed

MESH = AbstractMesh((2, 4), ("data", "model"))


def _module(platform: str) -> pyshardy.Module:
    if not is_installed(platform):
        pytest.skip(f"needs the compiler for {platform}")
    x = jax.ShapeDtypeStruct((64, 128), jnp.float32)
    w = jax.ShapeDtypeStruct((128, 128), jnp.float32)
    shardings = NamedSharding(MESH, P("data")), NamedSharding(MESH, P(None, "model"))
    return pyshardy.load(lambda x, w: jnp.tanh(x @ w).sum(1), x, w, in_shardings=shardings, platform=platform)


@pytest.mark.parametrize("platform, chip", [("tpu", "v5e"), ("cuda", "h100")])
def test_the_platform_of_the_program_chooses(platform: str, chip: str) -> None:
    found = pyshardy.partition(_module(platform))
    assert found.answer is not None and found.answer.target.chip == chip
    assert str(found.propagated).startswith(f"as compiled by {found.answer}\n")
    assert [row.kind for row in found.traffic.collectives] == ["all_reduce"]


def test_the_price_is_that_of_the_compiler_s_chip() -> None:
    found = pyshardy.cost(pyshardy.propagate(_module("tpu")))
    assert "v5e" in found.estimate.hardware
    assert str(found).splitlines()[1].startswith("as compiled by libtpu")


def test_a_price_alone_asks_nobody() -> None:
    found = pyshardy.cost(_module("tpu"))
    assert "v5p" in found.estimate.hardware
    assert str(found).splitlines()[1] == "as XLA for CPUs; for your TPU: --compiler tpu:v5e"


def test_none_asks_nobody_and_says_so() -> None:
    found = pyshardy.propagate(_module("tpu"), compiler="none")
    assert found.answer is None
    assert str(found).startswith("as XLA for CPUs; for your TPU: --compiler tpu:v5e\n")


def test_options_that_a_compiler_does_not_know_ask_nobody() -> None:
    module = _module("tpu")
    assert pyshardy.propagate(module, view="stablehlo").answer is None
    assert pyshardy.propagate(module, conservative=True).answer is None


def test_a_second_question_keeps_the_compiler() -> None:
    found = pyshardy.propagate(_module("tpu"))
    assert pyshardy.propagate(found) is found
    assert pyshardy.partition(found).answer is not None


def test_a_refusal_falls_back_and_says_how_to_see_it() -> None:
    if not is_installed("tpu"):
        pytest.skip("needs the compiler for tpu")
    x = jax.ShapeDtypeStruct((64, 128), jnp.float32, sharding=NamedSharding(MESH, P("data")))
    module = pyshardy.load(jax.jit(jnp.tanh, compiler_options={"xla_no_such_option": True}), x, platform="tpu")
    assert str(pyshardy.propagate(module)).startswith("as XLA for CPUs; for your TPU: --compiler tpu:v5e\n")
    with pytest.raises(pyshardy.ShardyError, match="xla_no_such_option"):
        pyshardy.propagate(module, compiler="tpu:v5e")


def test_options_of_jit_reach_the_compiler() -> None:
    if not is_installed("tpu"):
        pytest.skip("needs the compiler for tpu")
    x = jax.ShapeDtypeStruct((64, 128), jnp.float32, sharding=NamedSharding(MESH, P("data")))
    known = jax.jit(jnp.tanh, compiler_options={"xla_jf_spmd_threshold_for_windowed_einsum_mib": 1000})
    assert pyshardy.propagate(pyshardy.load(known, x, platform="tpu")).answer is not None
