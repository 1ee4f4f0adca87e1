"""Random programs that JAX makes: control flow, indexing, windows, sorts, scans and random numbers behind each other.

Numbers stay whole and small, so that sums are exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

_SHAPES = ((8, 6), (4, 8), (16, 3), (5, 7), (4, 6, 2), (2, 8, 4), (3, 5, 4), (6, 12), (1, 8), (8, 1, 4))
_MOST = 4000
"""A value has at most so many elements."""


def small(x: Any) -> Any:
    """The numbers, none of them far from 0."""
    return jnp.clip(x, -9, 9)


def _indices(x: Any, size: int) -> Any:
    return jnp.abs(x).astype(jnp.int32) % size


def _branches(r: Random, x: Any, y: Any) -> Any:
    if r.random() < 0.5:
        return lax.cond(x.sum() > r.randint(-3, 3), lambda a, b: a + b, lambda a, b: a - 2 * b, x, y)
    branches = [lambda a, b: a, lambda a, b: b, lambda a, b: a * 2 - b, lambda a, b: a[::-1] + b]
    return lax.switch(_indices(x.reshape(-1)[0], 4), branches, x, y)


def _loop(r: Random, x: Any, y: Any) -> Any:
    count = r.randint(1, 3)

    def body(carry: Any) -> Any:
        i, a, b = carry
        return i + 1, small(a + jnp.roll(b, 1, 0)), lax.cond(i % 2 == 0, lambda q: q[::-1], lambda q: -q, b)

    return lax.while_loop(lambda carry: (carry[0] < count) & (carry[1].sum() < 1000), body, (0, x, y))[1]


def _scan(r: Random, x: Any, y: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        carry = small(carry + row)
        return carry, carry * 2

    carry, rows = lax.scan(step, y[0], x, reverse=r.random() < 0.5)
    return rows + carry


def _nested_loops(r: Random, x: Any, y: Any) -> Any:
    def inner(i: Any, a: Any) -> Any:
        return lax.fori_loop(0, 2, lambda j, b: small(b.at[(i + j) % b.shape[0]].add(y[j % y.shape[0]])), a)

    return lax.fori_loop(0, r.randint(1, 3), inner, x)


def _take(r: Random, x: Any, y: Any) -> Any:
    dim, mode = r.randrange(x.ndim), r.choice(("clip", "fill", "wrap"))
    indices = y.reshape(-1)[: r.choice((3, 4, 6, 8))].astype(jnp.int32) * r.choice((1, 2, 5))
    return x + jnp.nan_to_num(jnp.take(x, indices, axis=dim, mode=mode)).sum(dim, keepdims=True)


def _take_along(r: Random, x: Any, y: Any) -> Any:
    dim = r.randrange(x.ndim)
    return jnp.take_along_axis(x, _indices(y, x.shape[dim]), axis=dim)


def _update(r: Random, x: Any, y: Any) -> Any:
    dim, count = r.randrange(x.ndim), min(r.choice((2, 4, 8)), y.size)
    indices = y.reshape(-1)[:count].astype(jnp.int32) * r.choice((1, 3))
    updates = jnp.take(y, jnp.arange(count) % y.shape[dim], axis=dim)
    place = x.at[(slice(None),) * dim + (indices,)]
    return small(getattr(place, r.choice(("add", "max", "min", "multiply")))(updates, mode=r.choice(("clip", "drop"))))


def _segments(r: Random, x: Any, y: Any) -> Any:
    ids = _indices(y.reshape(x.shape[0], -1)[:, 0], x.shape[0])
    combine = getattr(jax.ops, r.choice(("segment_sum", "segment_max", "segment_min")))
    return combine(x, ids, num_segments=x.shape[0]).clip(-50, 50)


def _convolution(r: Random, x: Any, y: Any) -> Any:
    inputs = x if x.ndim == 3 else x[None] if r.random() < 0.5 else x[:, None]
    channels, width = inputs.shape[1:]
    size, groups = r.choice((1, 2, 3)), r.choice((1, channels) if channels <= 8 else (1,))
    stride, holes, dilation = r.choice(((1, 1, 1), (1, 1, 2), (1, 2, 1), (2, 1, 1), (2, 1, 2)))
    padding: Any = [(r.randint(0, 2), r.randint(0, 2))] if holes > 1 else r.choice(("SAME", "VALID"))
    if holes == 1 and (size - 1) * dilation + 1 > width:
        padding = "SAME"
    kernel = jnp.resize(small(y), (groups * r.choice((1, 2)), channels // groups, size))
    return lax.conv_general_dilated(
        inputs, kernel, (stride,), padding, (holes,), (dilation,), feature_group_count=groups
    )


def _window(r: Random, x: Any, _: Any) -> Any:
    sizes, strides, dilations = (tuple(r.choice(found) for _ in x.shape) for found in ((1, 2, 3), (1, 1, 2), (1, 1, 2)))
    padding = r.choice(("SAME", [(r.randint(0, 2), r.randint(0, 2)) for _ in x.shape]))
    init, combine = r.choice(((-jnp.inf, lax.max), (0.0, lax.add), (jnp.inf, lax.min)))
    found = lax.reduce_window(x, init, combine, sizes, strides, padding, window_dilation=dilations)
    return jnp.nan_to_num(found, posinf=7, neginf=-7)


def _sort(r: Random, x: Any, y: Any) -> Any:
    dim = r.randrange(x.ndim)
    return r.choice(
        (
            lambda: jnp.sort(x, dim),
            lambda: lax.sort((x, y), dimension=dim, num_keys=2)[1],
            lambda: jnp.argsort(x, dim, stable=True).astype(float),
            lambda: lax.sort((-x, y, x * 2), dimension=dim, num_keys=1, is_stable=True)[1],
            lambda: lax.top_k(x, min(3, x.shape[-1]))[0],
        )
    )()


def _dynamic_slice(r: Random, x: Any, y: Any) -> Any:
    starts = [y.reshape(-1)[dim].astype(jnp.int32) for dim in range(x.ndim)]
    part = lax.dynamic_slice(x, starts, tuple(r.randint(1, size) for size in x.shape))
    return lax.dynamic_update_slice(x, part * 2, [-start if r.random() < 0.5 else start + 1 for start in starts])


def _random_numbers(r: Random, x: Any, y: Any) -> Any:
    key = jax.random.key(r.randint(0, 9), impl=r.choice(("threefry2x32", "rbg")))
    if r.random() < 0.5:
        key = jax.random.fold_in(key, _indices(x.reshape(-1)[0], 9))
    return r.choice(
        (
            lambda: x + jax.random.randint(key, x.shape, 0, 5),
            lambda: jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x, y),
            lambda: jax.random.permutation(key, x, axis=r.randrange(x.ndim)),
        )
    )()


def _complex(r: Random, x: Any, y: Any) -> Any:
    z = lax.complex(x, y)
    return r.choice(
        (
            lambda: (z * jnp.conj(z[::-1])).imag,
            lambda: jnp.einsum("...i,...j->...ij", z, z).sum(-1).real,
            lambda: jnp.where(z.real > 0, z, -z).imag,
        )
    )()


def _product(r: Random, x: Any, y: Any) -> Any:
    subscripts = (
        ("abc,abd->acd", "abc,adc->bad", "abc,dbc->ad") if x.ndim == 3 else ("ab,cb->ac", "ab,ac->bc", "ab,ab->a")
    )
    return jnp.einsum(r.choice(subscripts), x, y) % 11


def _concatenate(r: Random, x: Any, y: Any) -> Any:
    dim = r.randrange(x.ndim)
    part = y[(slice(None),) * dim + (slice(0, r.randint(1, y.shape[dim])),)]
    found = jnp.concatenate(r.sample((x, part, -x), r.randint(2, 3)), dim)
    start = r.randint(0, found.shape[dim] // 2)
    return lax.slice_in_dim(found, start, found.shape[dim] - r.randint(0, start), r.choice((1, 1, 2)), dim)


def _pad(r: Random, x: Any, _: Any) -> Any:
    return lax.pad(
        x, 1.0, [(r.randint(-1 if size > 2 else 0, 3), r.randint(0, 2), r.choice((0, 0, 1))) for size in x.shape]
    )


def _cumulate(r: Random, x: Any, y: Any) -> Any:
    dim = r.randrange(x.ndim)
    return r.choice(
        (
            lambda: jnp.cumsum(x, dim) % 13,
            lambda: lax.cummax(x, dim, reverse=True),
            lambda: lax.associative_scan(jnp.maximum, x, axis=dim),
        )
    )()


def _reduce(r: Random, x: Any, y: Any) -> Any:
    dim = r.randrange(x.ndim)
    numbers = lax.broadcasted_iota(jnp.int32, x.shape, dim)

    def largest(one: Any, other: Any) -> Any:
        return tuple(jnp.where(one[0] >= other[0], a, b) for a, b in zip(one, other))

    def both() -> Any:
        value, index = lax.reduce((x, numbers), (-jnp.inf, 0), largest, (dim,))
        return jnp.expand_dims(value + index, dim) + y

    return r.choice((both, lambda: x - x.max(dim, keepdims=True), lambda: jnp.argmax(x, dim, keepdims=True) + y))()


def _gradient(_: Random, x: Any, y: Any) -> Any:
    indices = _indices(y[..., 0].reshape(-1)[:3], x.shape[0])
    return jax.grad(lambda q: jnp.take(q, indices, axis=0).sum() * 3 + lax.cumsum(q, q.ndim - 1).sum())(x)


def _batched_indices(_: Random, x: Any, y: Any) -> Any:
    return jax.vmap(lambda a, b: a.at[_indices(b.reshape(-1)[0], a.shape[0])].add(b[0]))(x, y)


def _move(r: Random, x: Any, y: Any) -> Any:
    return r.choice(
        (
            lambda: jnp.roll(x, r.randint(-3, 3), r.randrange(x.ndim)),
            lambda: x.reshape(-1)[::-1].reshape(x.shape) - y,
            lambda: x.reshape(4, -1) if x.size % 4 == 0 else jnp.swapaxes(x, 0, -1),
            lambda: jnp.tile(x, (2,) + (1,) * (x.ndim - 1)),
            lambda: jnp.repeat(x, 2, axis=r.randrange(x.ndim)),
        )
    )()


_STEPS: tuple[Callable[[Random, Any, Any], Any], ...] = (
    _branches, _loop, _scan, _nested_loops, _take, _take_along, _update, _segments, _convolution, _window, _sort,
    _dynamic_slice, _random_numbers, _complex, _product, _concatenate, _pad, _cumulate, _reduce, _gradient,
    _batched_indices, _move,
)  # fmt: skip


def _fit(array: Any, shape: tuple[int, ...]) -> Any:
    """The numbers of an array in another shape, cut or with zeros behind them."""
    count, flat = int(np.prod(shape)), array.reshape(-1)
    flat = flat[:count] if flat.size >= count else jnp.pad(flat, (0, count - flat.size))
    return flat.reshape(shape)


def function(
    seed: int,
    name: str = "composed",
    among: Sequence[Callable[[Random, Any, Any], Any]] = _STEPS,
    shapes: Sequence[tuple[int, ...]] = _SHAPES,
) -> tuple[Callable[..., Any], list[jax.ShapeDtypeStruct]]:
    """A function of two arrays, and the arrays as shapes.

    Args:
        seed: What it is drawn from.
        name: What it is drawn from, too.
        among: The steps that it may have.
        shapes: The shapes of its inputs.
    """
    random = Random(f"{name} {seed}")
    shape, steps = random.choice(shapes), random.choices(among, k=random.choice((1, 2, 3, 4, 6)))
    state = random.getstate()

    def composed(*args: Any) -> Any:
        r = Random()
        r.setstate(state)  # for every trace the same
        values = [small(arg) for arg in args]
        for step in steps:
            x = r.choice(values[-3:])
            while x.ndim < 2:
                x = jnp.stack([x, x * 2])
            found = jnp.asarray(step(r, x, _fit(r.choice(values), x.shape)), jnp.float32)
            while found.ndim > 3:
                found = found.reshape(*found.shape[:-2], found.shape[-2] * found.shape[-1])
            if found.size > _MOST:
                found = found.reshape(-1)[:512].reshape(8, 64)
            values.append(x if 0 in found.shape else small(found))
        return tuple(values[len(args) :])

    return composed, [jax.ShapeDtypeStruct(shape, jnp.float32)] * 2


def unsharded(seed: int) -> tuple[str, Random]:
    """The function as a module, and what its shardings are drawn with."""
    composed, args = function(seed)
    return jax.jit(composed).lower(*args).as_text(), Random(f"composed sharded {seed}")
