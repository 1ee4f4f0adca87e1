"""Weights that a function closes over are constants of its program, which a warning says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pyshardy

RANDOM = np.random.default_rng(0)
X = jax.ShapeDtypeStruct((8, 64), np.float32)
AT = jax.ShapeDtypeStruct((8,), np.int32)
W = RANDOM.normal(size=(64, 64)).astype(np.float32)
LAYERS = jnp.asarray(RANDOM.normal(size=(4, 64, 64)), jnp.bfloat16)


def warnings(function: Callable[..., Any], *arguments: Any) -> list[str]:
    """What propagation and partitioning say of a function, once each."""
    module = pyshardy.load(function, *arguments, mesh={"data": 4, "model": 2})
    found = pyshardy.propagate(module).warnings
    assert pyshardy.partition(module).warnings == found
    return [one for one in found if "closes over" in one]


def over_layers(x: jax.Array) -> jax.Array:
    return jax.lax.scan(lambda x, w: (x @ w.astype(np.float32), None), x, LAYERS)[0]


@pytest.mark.parametrize(
    ("function", "arguments", "what"),
    [
        (lambda x: x @ W, (X,), "1 array is a constant of the program, and used like weights (16.0 KiB)"),
        (
            lambda x: (x @ W) @ W.T[::-1],
            (X,),
            "2 arrays are constants of the program, and used like weights (32.0 KiB)",
        ),
        (lambda x, at: x + jnp.asarray(W)[at], (X, AT), "1 array is a constant"),
        (over_layers, (X,), "1 array is a constant of the program, and used like weights (32.0 KiB)"),
        (lambda x: jax.jit(over_layers)(x), (X,), "1 array is a constant"),
        (lambda x: jax.checkpoint(lambda x: jnp.tanh(x @ W))(x), (X,), "1 array is a constant"),
    ],
    ids=["product", "two", "table", "scan", "call", "checkpoint"],
)
def test_weights_are_named_with_their_bytes(
    function: Callable[..., Any], arguments: tuple[Any, ...], what: str
) -> None:
    (warning,) = warnings(function, *arguments)
    assert what in warning
    assert "as arguments" in warning
    assert "test_closed_over.py:" in warning.split(" ")[0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x @ jnp.ones((64, 64)),
        lambda x: x * W[:8] + jnp.cos(W[:8]),
        lambda x: x @ W[:, :4],
        lambda x: x[np.arange(64) % 8] @ jnp.zeros((64, 64)),
        lambda x: x + jnp.arange(64.0),
    ],
    ids=["one number", "elementwise", "small", "indices", "iota"],
)
def test_other_constants_are_no_weights(function: Callable[..., Any]) -> None:
    assert warnings(function, X) == []


def test_weights_that_are_arguments_are_fine() -> None:
    assert warnings(lambda w, x: x @ w, jax.ShapeDtypeStruct((64, 64), np.float32), X) == []


@pytest.mark.filterwarnings("ignore:a module is written op by op")
def test_files_and_resources_too(tmp_path: Path) -> None:
    module = pyshardy.load(lambda x: x @ W, X, mesh={"data": 4})
    path = tmp_path / "closed.mlirbc"
    path.write_bytes(module.bytecode())
    (warning,) = pyshardy.propagate(pyshardy.load(path)).warnings
    assert "1 array is a constant" in warning
    text = """func.func @main(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %w = stablehlo.constant dense_resource<weights> : tensor<64x64xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}"""
    (warning,) = pyshardy.propagate(pyshardy.load(text)).warnings
    assert "(16.0 KiB)" in warning
