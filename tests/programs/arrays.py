"""Operations on arrays apart from learning: sorting, stencils, transforms, linear algebra, number types, shapes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from .base import integers, normal, program, uniform


@program(data=4, model=2)
def sorting(mesh: Mesh) -> tuple[Any, ...]:
    """Sorts along whole and along split dimensions, top-k, ranks, running sums and searches."""

    def run(x, values):
        order = jnp.argsort(x, axis=1)
        keys, carried = lax.sort_key_val(x.T, jnp.broadcast_to(values, x.T.shape), dimension=0)
        best, where = lax.top_k(x, 3)
        # Different operands: of one operand and dimension, XLA of jax 0.10 pads the second operation like the first.
        sums = jnp.cumsum(x, axis=0), lax.cummax(-x, axis=1), lax.cumlogsumexp(2 * x, axis=1), jnp.cumprod(x, axis=1)
        found = jnp.searchsorted(jnp.sort(values[:, 0]), x[:, :4])
        return jnp.sort(x, axis=0), order, keys, carried, best, where, sums, found, jnp.median(x, axis=1)

    return run, (normal(8, 16), normal(16, 1)), (P("data", "model"), None)


@program(x=4, y=2)
def stencil(mesh: Mesh) -> tuple[Any, ...]:
    """A heat equation on a split grid: rolls, pads, reversals, strided slices and concatenations."""

    def advance(_, grid):
        padded = jnp.pad(grid, 1, mode="edge")
        around = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
        return grid + 0.1 * (around - 4 * grid)

    def run(grid, shift):
        grid = lax.fori_loop(0, 3, advance, grid)
        rolled = jnp.roll(grid, 1, axis=0) - jnp.roll(grid, shift, axis=1)
        mirrored = jnp.concatenate([grid[::-1], grid[:, ::-1]], axis=0)
        coarse = grid[::2, ::2] + grid[1::2, 1::2]
        spread = lax.pad(coarse, 0.0, ((0, 1, 1), (1, 0, 1)))
        window = lax.dynamic_slice(grid, (shift, shift), (4, 4))
        return grid, rolled, mirrored, spread, window, jnp.stack([coarse, -coarse], axis=1)

    return run, (normal(16, 8), integers(low=2, high=4)), (P("x", "y"), None)


@program(data=4, model=2)
def fourier(mesh: Mesh) -> tuple[Any, ...]:
    """Convolution by FFT, with the batch split and with the transformed dimension split."""

    def run(signal, kernel, image, split):
        spectrum = jnp.fft.rfft(signal, axis=-1) * jnp.fft.rfft(kernel, signal.shape[-1])
        filtered = jnp.fft.irfft(spectrum, signal.shape[-1], axis=-1)
        smooth = jnp.fft.ifft2(jnp.fft.fft2(image) * jnp.exp(-jnp.abs(jnp.fft.fftfreq(8))))
        along = jnp.fft.fft(signal, axis=0).imag
        return filtered, smooth.real, along, jnp.fft.fftshift(jnp.abs(jnp.fft.fft2(split)), axes=(-2, -1))

    inputs = (normal(8, 16), normal(5), normal(4, 8, 8), normal(4, 8, 8))
    return run, inputs, (P("data"), None, P("data"), P("data", "model"))


@program(data=4, model=2)
def linear_algebra(mesh: Mesh) -> tuple[Any, ...]:
    """Batched factorizations; those with free signs are multiplied together again."""

    def run(a, b):
        square = a @ a.mT + 4 * jnp.eye(a.shape[-1])
        lower = jnp.linalg.cholesky(square)
        solved = lax.linalg.triangular_solve(lower, b, left_side=True, lower=True)
        q, r = jnp.linalg.qr(a)
        values, vectors = jnp.linalg.eigh(square)
        lu, _, permutation = lax.linalg.lu(square)
        rebuilt = (vectors * values[..., None, :]) @ vectors.mT
        return lower, solved, q @ r, values, rebuilt, lu, permutation, jnp.linalg.svd(a, compute_uv=False)

    return run, (normal(4, 6, 6), normal(4, 6, 8)), (P("data"), P("data", None, "model"))


@program(data=4, model=2)
def linear_solve(mesh: Mesh) -> tuple[Any, ...]:
    """Solving with one large split matrix, its log determinant, and the gradient through both."""

    def loss(a, b):
        square = a @ a.T + 8 * jnp.eye(a.shape[0])
        x = jnp.linalg.solve(square, b)
        factor = jax.scipy.linalg.cho_factor(square)
        return jnp.sum(x * jax.scipy.linalg.cho_solve(factor, b)) + jnp.linalg.slogdet(square)[1]

    return jax.value_and_grad(loss, argnums=(0, 1)), (normal(8, 8), normal(8, 4)), (P("data", "model"), P("data"))


@program(data=4, model=2)
def number_types(mesh: Mesh) -> tuple[Any, ...]:
    """Quantized int8 products, masks, complex numbers, half precision, bits."""

    def run(x, w, mask, half, signal):
        scale = jnp.max(jnp.abs(w), axis=0) / 127
        exact = lax.dot(x, jnp.round(w / scale).astype(jnp.int8), preferred_element_type=jnp.int32)
        any_row, all_column = jnp.any(mask, axis=1), jnp.all(mask | ~mask[:1], axis=0)
        rotated = signal * jnp.conj(signal[::-1]) + lax.complex(exact[:, 0].astype(jnp.float32), 1.0)
        small = jnp.clip(half, -4, 4).astype(jnp.float8_e4m3fn).astype(jnp.float32)
        bits = lax.bitcast_convert_type(half, jnp.uint16)
        mixed = lax.population_count(bits) ^ (bits >> 3) & jnp.uint16(0xFF)
        chosen = jnp.where(mask, half, 0).sum()
        return exact * scale, any_row, all_column, rotated, jnp.abs(rotated), small, mixed, chosen

    inputs = (
        integers(8, 16, low=-100, high=100, dtype=np.int8),
        normal(16, 32),
        integers(8, 16, high=2, dtype=np.bool_),
        normal(8, 16, dtype=jnp.bfloat16),
        normal(8, dtype=np.complex64),
    )
    return run, inputs, (P("data"), P(None, "model"), P("data", "model"), P("data"), None)


@program(data=4, model=2)
def elementwise(mesh: Mesh) -> tuple[Any, ...]:
    """Elementwise functions that the other programs do not use, on one operand, two and three."""
    special = jax.scipy.special
    of_any = (jnp.expm1, jnp.sign, jnp.cbrt, jnp.tan, jnp.arctan, jnp.arcsinh, jnp.cosh, jnp.rint, lax.round, lax.erfc)
    of_unit = (jnp.arccos, jnp.arcsin, jnp.arctanh, special.erf, special.i1e, special.gammaln, special.logit)

    def run(x, unit, bits):
        values = [f(x) for f in of_any] + [f(unit) for f in of_unit] + [jnp.hypot(x, unit), jnp.nextafter(x, unit)]
        values += [special.zeta(1.5 + unit, unit), special.polygamma(1, unit), jnp.clip(x, -unit, unit)]
        counted = lax.clz(bits) + (bits >> 2) + lax.rem(bits, 7) + jnp.invert(bits) // 3
        return values, counted, lax.reduce_precision(x, 5, 10), jnp.isfinite(x) & jnp.isnan(unit), lax.logistic(x)

    inputs = (normal(8, 16), uniform(16, low=0.1, high=0.9), integers(8, 1, low=-99, high=99))
    return run, inputs, (P("data"), P("model"), None)


@program(x=2, y=4)
def reshapes(mesh: Mesh) -> tuple[Any, ...]:
    """Reshapes that merge and split sharded dimensions, so that parts of an axis land on different dimensions."""

    def run(a, b, c):
        split = jnp.sin(a).reshape(2, 4, 16)  # the first dimension, split 4 ways, becomes 2 and 4
        merged = jnp.cos(b).reshape(-1)
        mixed = jnp.exp(c).reshape(8, 3, 4).transpose(1, 0, 2).reshape(3, 32)
        back = (merged.reshape(4, 4, 8) * split.reshape(-1, 8)[:4]).reshape(2, 64)
        flat = lax.with_sharding_constraint(a.reshape(-1), NamedSharding(mesh, P(("x", "y"))))
        return split, merged, mixed, back, flat.reshape(8, 16) + a

    return run, (normal(8, 16), normal(16, 8), normal(24, 4)), (P("y"), P("x", "y"), P(("x", "y")))


@program(x=4, y=2)
def uneven(mesh: Mesh) -> tuple[Any, ...]:
    """Sizes that the axes do not divide: uneven constraints, concatenations, products and reductions."""

    def run(a, b, w):
        joined = lax.with_sharding_constraint(jnp.concatenate([a, b]), NamedSharding(mesh, P("x")))  # 8 + 3 rows by 4
        product = lax.with_sharding_constraint(joined @ w, NamedSharding(mesh, P("x", "y")))  # 11 by 7
        differences = jnp.diff(product, axis=0).reshape(5, 14)
        return jax.nn.softmax(product, axis=0), differences, product.max(axis=0), product.reshape(-1)[5:], joined.mean()

    return run, (normal(8, 6), normal(3, 6), normal(6, 7)), (P("x"), None, None)


@program(data=8)
def interpolation(mesh: Mesh) -> tuple[Any, ...]:
    """Gathers and scatters at computed places: table lookup, histogram, indexed updates on several dimensions."""

    def run(table, x, pairs, image):
        low = jnp.clip(jnp.floor(x * 15).astype(jnp.int32), 0, 14)
        part = x * 15 - low
        looked = table[low] * (1 - part) + table[low + 1] * part
        counts = jnp.zeros(16).at[low].add(1.0)
        picked = image[pairs[:, 0], :, pairs[:, 1]]
        pasted = image.at[pairs[:, 0], :, pairs[:, 1]].multiply(2.0, unique_indices=False)
        rows = jax.vmap(lambda row, at: lax.dynamic_slice(row, (at,), (3,)))(looked.reshape(8, 4), pairs[:, 0])
        return looked, counts, picked, pasted, rows, jnp.interp(x, jnp.linspace(0, 1, 16), table)

    inputs = (normal(16), uniform(32), integers(8, 2, high=4), normal(4, 6, 4))
    return run, inputs, (None, P("data"), P("data"), None)
