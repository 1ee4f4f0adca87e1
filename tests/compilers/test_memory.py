"""The memory of small programs, estimated, is what XLA for TPUs and for GPUs compiles: each shows one rule."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec

import pyshardy
from pyshardy.compilers.ask import ask
from pyshardy.compilers.plugins import is_installed
from pyshardy.costing.compilers import XLA_ON_TPU

TPU, GPU = "tpu:v5e:2x4", "cuda:h100:8"
SPLIT = '{sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}, {}]>}'


def attention(length: int, width: int = 128, scaled: bool = True, batch: int = 0) -> str:
    """Attention without a mask over sequences of a length, of 2**26 scores per device."""
    batch = 8 * (batch or max(1, 2**26 // length**2))
    rows, narrow = f"tensor<{batch}x{length}xf32>", f"tensor<{batch}x{length}x{length}xbf16>"
    wide, given = narrow.replace("bf16", "f32"), f"tensor<{batch}x{length}x{width}xbf16>"
    numbers = "batching_dims = [0] x [0], contracting_dims"
    scores = f"%scores = stablehlo.multiply %f, %scale : {wide}" if scaled else ""
    scores_name = "%scores" if scaled else "%f"
    return f"""
    sdy.mesh @mesh = <["data"=8]>
    func.func @main(%q: {given} {SPLIT}, %k: {given} {SPLIT}, %v: {given} {SPLIT}) -> ({given} {SPLIT}) {{
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %scale = stablehlo.constant dense<0.0883> : {wide}
      %s = stablehlo.dot_general %q, %k, {numbers} = [2] x [2] : ({given}, {given}) -> {narrow}
      %f = stablehlo.convert %s : ({narrow}) -> {wide}
      {scores}
      %m = stablehlo.reduce({scores_name} init: %least) applies stablehlo.maximum across dimensions = [2]
        : ({wide}, tensor<f32>) -> {rows}
      %n = stablehlo.broadcast_in_dim %m, dims = [0, 1] : ({rows}) -> {wide}
      %d = stablehlo.subtract {scores_name}, %n : {wide}
      %e = stablehlo.exponential %d : {wide}
      %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2]
        : ({wide}, tensor<f32>) -> {rows}
      %u = stablehlo.broadcast_in_dim %t, dims = [0, 1] : ({rows}) -> {wide}
      %p = stablehlo.divide %e, %u : {wide}
      %b = stablehlo.convert %p : ({wide}) -> {narrow}
      %o = stablehlo.dot_general %b, %v, {numbers} = [2] x [1] : ({narrow}, {given}) -> {given}
      return %o : {given}
    }}"""


def temporaries(text: str, compiler: str) -> tuple[int, int]:
    """The bytes of temporaries of a compiled program, and the estimate."""
    platform, chip, *_ = compiler.split(":")
    if not is_installed(platform):
        pytest.skip(f"the compiler for {chip} is not installed beside this Python")
    answer = ask(pyshardy.load(text), compiler, to_the_end=True)
    assert answer.memory is not None
    found = pyshardy.cost(pyshardy.propagate(text, compiler="none"), chip)
    return answer.memory["temp"], found.estimate.memory.temporary_bytes


def assert_near(pair: tuple[int, int], within: float = 0.03) -> None:
    compiled, estimated = pair
    assert abs(estimated - compiled) <= within * compiled, f"{estimated} estimated, {compiled} compiled"


@pytest.mark.parametrize("length", [64, 512, 2048])
def test_a_softmax_in_a_product_stores_exponentials_in_f32(length: int) -> None:
    """With 64 elements in a row, tiles of 128 lanes take twice the memory."""
    assert_near(temporaries(attention(length, width=256), TPU))


@pytest.mark.parametrize("length", [8192, 16384])
def test_a_softmax_over_longer_rows_stores_the_product(length: int) -> None:
    assert length > XLA_ON_TPU.softmax_row
    assert_near(temporaries(attention(length), TPU))


IMAGE, KERNEL = "tensor<1024x32x32x256xbf16>", "tensor<3x3x256x256xbf16>"
IMAGE_SPLIT = '{sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}, {}, {}]>}'


def convolved(result: str, operand: str) -> str:
    return f"""{result} = stablehlo.convolution({operand}, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {{pad = [[1, 1], [1, 1]]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : ({IMAGE}, {KERNEL}) -> {IMAGE}"""


CONVOLUTIONS = f"""
    sdy.mesh @mesh = <["data"=8]>
    func.func @main(%x: {IMAGE} {IMAGE_SPLIT}, %w: {KERNEL}) -> tensor<256xbf16> {{
      %zero = stablehlo.constant dense<0.0> : tensor<bf16>
      {convolved("%0", "%x")}
      {convolved("%2", "%0")}
      %3 = stablehlo.multiply %2, %0 : {IMAGE}
      {convolved("%4", "%3")}
      %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [0, 1, 2]
        : ({IMAGE}, tensor<bf16>) -> tensor<256xbf16>
      return %5 : tensor<256xbf16>
    }}"""


def test_nothing_is_written_where_the_result_of_a_convolution_was_on_gpus() -> None:
    """Its kernel returns a workspace too, and XLA writes over no part of several results."""
    assert_near(temporaries(CONVOLUTIONS, GPU))


BF16, F32 = jnp.bfloat16, jnp.float32


@pytest.mark.parametrize(
    ("between", "dtype"),
    [
        (lambda h, m: jnp.tanh(h), BF16),
        (lambda h, m: jnp.tanh(h), F32),
        (lambda h, m: h * m, BF16),
        (lambda h, m: h * m, F32),
        (lambda h, m: jnp.tanh(h) * h, BF16),
        (lambda h, m: jnp.tanh(h) * h, F32),
        (lambda h, m: (h.astype(F32) * m.astype(F32)).astype(BF16), BF16),
    ],
)
def test_between_two_products_bf16_is_stored_on_tpus(
    between: Callable[[jax.Array, jax.Array], jax.Array], dtype: jnp.dtype
) -> None:
    """f32 too, if products alone read it: the one before computes what reads its result once."""
    rows, width, wide = 2**16, 1024, 8192
    shapes = (rows, width), (width, wide), (wide, width), (rows, wide)
    given = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
    splits = PartitionSpec("data"), PartitionSpec(), PartitionSpec(), PartitionSpec("data")

    def step(x: jax.Array, first: jax.Array, second: jax.Array, other: jax.Array) -> jax.Array:
        return between(x @ first, other) @ second

    text = pyshardy.load(step, *given, mesh={"data": 8}, in_shardings=splits, platform="tpu").text()
    assert_near(temporaries(text, TPU))


def grouped(is_masked: bool, heads: int) -> str:
    """The gradient of a scan over layers of attention of grouped heads, rematerialized, of 2**24 scores per device."""
    length, width, groups, size = 1024, 128, 16 // heads, 64

    def layer(x: jax.Array, w: tuple[jax.Array, ...]) -> jax.Array:
        q, k, v = jnp.einsum("btw,wghd->btghd", x, w[0]), *(jnp.einsum("btw,wgd->btgd", x, one) for one in w[1:3])
        scores = jnp.einsum("btghd,bsgd->bghts", q, k).astype(jnp.float32)
        if is_masked:
            at = jnp.arange(length)
            scores = jnp.where(at[:, None] >= at, scores, -1e9)
        weights = jax.nn.softmax(scores, -1).astype(x.dtype)
        return x + jnp.einsum("bghts,bsgd,ghdw->btw", weights, v, w[3])

    def loss(w: tuple[jax.Array, ...], x: jax.Array) -> jax.Array:
        x, _ = jax.lax.scan(lambda x, w: (jax.checkpoint(layer)(x, w), None), x, w)
        return jnp.sum(x.astype(jnp.float32) ** 2)

    key = (2, width, groups, size)
    shapes = (2, width, groups, heads, size), key, key, (2, groups, heads, size, width)
    weights = tuple(jax.ShapeDtypeStruct(shape, jnp.bfloat16) for shape in shapes)
    given = weights, jax.ShapeDtypeStruct((8, length, width), jnp.bfloat16)
    splits = ((PartitionSpec(),) * 4, PartitionSpec("data"))
    return pyshardy.load(jax.grad(loss), *given, mesh={"data": 8}, in_shardings=splits, platform="cuda").text()


@pytest.mark.parametrize("heads", [2, 4])
@pytest.mark.parametrize("is_masked", [False, True])
def test_gradients_of_grouped_heads_are_copied_in_f32_on_gpus(is_masked: bool, heads: int) -> None:
    """The mask of a scan is two arrays through its loop: which scores stay, and in f32 the number for the others."""
    assert_near(temporaries(grouped(is_masked, heads), GPU))


def test_the_comparison_can_fail() -> None:
    assert_near((100, 102))
    with pytest.raises(AssertionError, match="50 estimated, 100 compiled"):
        assert_near((100, 50))
