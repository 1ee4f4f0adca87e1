"""Random JAX programs of odd sizes and element types, of which few values are sharded: propagation decides the rest."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from end_to_end import composed_programs
from jax import lax

_SHAPES = ((7, 5), (13,), (12, 4), (3, 16), (1, 11), (2, 3, 5), (6, 1, 4), (5, 7, 2), (11, 2, 3), (1, 8, 1), (16, 7))
_NARROW = ("bfloat16", "float16")
_TYPES = ("float32", *_NARROW, "int32", "int8", "uint8", "int16", "bool")


def _as(x: Any, dtype: str) -> Any:
    """Whole numbers in another type, small enough that sums of a few hundred are exact."""
    if dtype in _NARROW:
        return jnp.clip(x, -1, 1).astype(dtype)
    return (x != 0) if dtype == "bool" else (jnp.abs(x) if dtype[0] == "u" else x).astype(dtype)


def _cut(x: Any, shape: tuple[int, ...]) -> Any:
    """The numbers of an array in another shape, over and over."""
    return jnp.resize(x, shape)


def _indices(r: Random, x: Any, shape: tuple[int, ...], size: int) -> Any:
    """Indices in bounds and out of them, computed or constant."""
    found = _cut(x, shape).astype(jnp.int32)
    constant = np.array([r.randint(-size - 2, size + 2) for _ in range(int(np.prod(shape)))], np.int32).reshape(shape)
    return r.choice((found, found * 3, jnp.abs(found) % size, jnp.asarray(constant)))


def _approximate(r: Random, x: Any, _: Any) -> Any:
    dim = r.randrange(x.ndim)
    find = r.choice((lax.approx_max_k, lax.approx_min_k))
    return find(x, r.randint(1, x.shape[dim]), reduction_dimension=dim)[0]


def _compose(r: Random, x: Any, y: Any) -> Any:
    """Linear functions one after the other, whose order matters."""

    def after(one: Any, other: Any) -> Any:
        return one[0] * other[0], one[1] * other[0] + other[1]

    whole = x.astype(jnp.int32), y.astype(jnp.int32)
    return sum(lax.reduce(whole, (np.int32(1), np.int32(0)), after, (r.randrange(x.ndim),))) % 16


def _convolution(r: Random, x: Any, y: Any) -> Any:
    of_features, of_batch = r.choice(((1, 1), (2, 1), (3, 1), (1, 2), (1, 3)))
    inputs, outputs = of_features * r.randint(1, 2), of_features * of_batch * r.randint(1, 2)
    sizes, kernel = [r.choice((1, 3, 5, 7, 8)) for _ in "HW"], [r.randint(1, 3) for _ in "HW"]
    dtype = r.choice(("float32", *_NARROW))
    layout = r.choice((("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC"), ("CHNW", "IHOW", "HCWN")))
    lhs = dict(zip("NCHW", (of_batch * r.randint(1, 3), inputs, *sizes)))
    rhs = dict(zip("OIHW", (outputs, inputs // of_features, *kernel)))
    lhs_shape, rhs_shape = (tuple(map(found.get, order)) for found, order in zip((lhs, rhs), layout))
    strides, holes, dilation = (tuple(r.choice(few) for _ in "HW") for few in ((1, 1, 2, 3), (1, 1, 2), (1, 1, 2)))
    return lax.conv_general_dilated(
        _as(_cut(x, lhs_shape), dtype), _as(_cut(y, rhs_shape), dtype), strides,
        [(r.randint(-1, 3), r.randint(2, 4)) for _ in "HW"], holes, dilation, layout,
        feature_group_count=of_features, batch_group_count=of_batch,
    )  # fmt: skip


def _factors(r: Random, count: int) -> list[int]:
    """Sizes of dimensions that multiply to a number."""
    found = []
    while count > 1 and len(found) < 3:
        found.append(r.choice([size for size in range(1, count + 1) if count % size == 0]))
        count //= found[-1]
    found.insert(r.randint(0, len(found)), count)
    return found


def _reshape(r: Random, x: Any, y: Any) -> Any:
    return (x + y).reshape(_factors(r, x.size)) * 2


def _elements(r: Random, x: Any, y: Any) -> Any:
    dtype = r.choice(_TYPES)
    one, other = _as(x, dtype), _as(y, dtype)
    if dtype == "bool":
        return r.choice((jnp.logical_and, jnp.logical_xor))(one, other)
    return r.choice((jnp.add, jnp.multiply, jnp.maximum, lambda a, b: jnp.where(a < b, a, b)))(one, other)


def _sum(r: Random, x: Any, _: Any) -> Any:
    dims = tuple(r.sample(range(x.ndim), r.randint(1, x.ndim)))
    found = _as(x, r.choice(_TYPES))
    if found.dtype == bool:
        return r.choice((jnp.any, jnp.all, jnp.sum))(found, dims, keepdims=r.random() < 0.5)
    return r.choice((jnp.sum, jnp.max, jnp.min))(found, dims, keepdims=r.random() < 0.5)


def _gather(r: Random, x: Any, y: Any) -> Any:
    """A gather of windows along any dimensions."""
    starts = r.sample(range(x.ndim), r.randint(1, x.ndim))
    sizes = [r.choice((1, size, r.randint(1, size))) for size in x.shape]
    collapsed = tuple(dim for dim, size in enumerate(sizes) if size == 1 and r.random() < 0.6)
    batch = tuple(r.choice((1, 2, 5)) for _ in range(r.randint(0, 2)))
    rank = len(batch) + x.ndim - len(collapsed)
    offsets = tuple(sorted(r.sample(range(rank), x.ndim - len(collapsed))))
    indices = jnp.stack([_indices(r, y, batch, x.shape[dim]) for dim in starts], -1)
    numbers = lax.GatherDimensionNumbers(offsets, collapsed, tuple(starts))
    return lax.gather(x, indices, numbers, tuple(sizes), mode=r.choice(("clip", "fill")), fill_value=0)


def _put(r: Random, x: Any, y: Any) -> Any:
    dim, count = r.randrange(x.ndim), r.choice((1, 3, 5))
    place = x.at[(slice(None),) * dim + (_indices(r, y, (count,), x.shape[dim]),)]
    updates = _cut(y, (*x.shape[:dim], count, *x.shape[dim + 1 :]))
    return getattr(place, r.choice(("add", "max", "min")))(updates, mode=r.choice(("clip", "drop")))


def _find(r: Random, x: Any, y: Any) -> Any:
    dim = r.randrange(x.ndim)
    return r.choice(
        (
            lambda: jnp.nonzero(x, size=5, fill_value=-1)[0],
            lambda: jnp.unique(x, size=5, fill_value=0),
            lambda: lax.sort((_as(x, "int8"), y), dimension=dim, num_keys=2)[1],
            lambda: jnp.searchsorted(jnp.sort(x.reshape(-1)), y),
            lambda: jnp.median(x, dim) * 2,
        )
    )()


def _scan_all(r: Random, x: Any, _: Any) -> Any:
    dim, found = r.randrange(x.ndim), _as(x, r.choice(("float32", "int32", "int8")))
    return lax.associative_scan(r.choice((jnp.add, jnp.maximum)), found, axis=dim, reverse=r.random() < 0.5)


def _repeat(r: Random, x: Any, y: Any) -> Any:
    """A scan over rows, or the same function of every slice along a dimension."""
    if r.random() < 0.5:
        return lax.scan(lambda carry, row: (jnp.clip(carry[::-1] + row, -9, 9), carry * 2), y[-1], x)[1]
    return jax.vmap(lambda a, b: jnp.roll(a, 1, 0) - b, r.randrange(x.ndim), r.randrange(x.ndim))(x, x)


def _widen(r: Random, x: Any, y: Any) -> Any:
    config = [(r.choice((0, 1, 3, -1)), r.choice((0, 2, 3)), r.choice((0, 0, 1, 2))) for _ in x.shape]
    return lax.pad(x, y.reshape(-1)[0], config)


_STEPS: tuple[Callable[[Random, Any, Any], Any], ...] = (
    _approximate, _compose, _convolution, _convolution, _reshape, _reshape, _elements, _sum, _gather, _put, _find, _scan_all, _repeat,
    _widen,
)  # fmt: skip


def unsharded(seed: int) -> tuple[str, Random]:
    """A program without shardings, and what its shardings are drawn with."""
    function, args = composed_programs.function(seed, "odd", _STEPS, _SHAPES)
    return jax.jit(function).lower(*args).as_text(), Random(f"odd sharded {seed}")
