"""Programs of public reports on sharding, whose results surprised people: what they do is easy to get wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

P = PartitionSpec


@dataclass(frozen=True)
class Reported:
    """A program.

    Attributes:
        function: The function.
        arguments: Its arguments, as arrays.
        specs: The shardings of the arguments on the mesh data=4, model=2; None for an argument without one.
        on_mesh: Whether only `jax.jit` on the mesh can say what is right: op by op, JAX refuses it.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    specs: tuple[Any, ...]
    on_mesh: bool = False

    def jitted(self) -> Any:
        """The function under `jax.jit` with its shardings."""
        return jax.jit(self.function, in_shardings=tuple(None if spec is None else on(spec) for spec in self.specs))


def mesh() -> Mesh:
    """The mesh of all programs."""
    return Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("data", "model"))


def on(spec: PartitionSpec) -> NamedSharding:
    """A sharding on the mesh."""
    return NamedSharding(mesh(), spec)


def _floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def _ints(high: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(0, high, shape, dtype=np.int32)


def _constrained(x: Any, w: Any) -> Any:
    """A constraint whose axis does not divide the dimension."""
    return jax.lax.with_sharding_constraint(x @ w, on(P(None, "data")))


def _cross_entropy(hidden: Any, table: Any, targets: Any) -> Any:
    logits = jax.lax.with_sharding_constraint(hidden @ table, on(P("data", "model")))
    picked = jnp.take_along_axis(logits, targets[:, None], axis=1)[:, 0]
    return jnp.mean(jax.nn.logsumexp(logits, axis=1) - picked)


def _looked_up(table: Any, tokens: Any) -> Any:
    return jnp.sum(jnp.sin(jnp.take(table, tokens, axis=0)) ** 2)


def _decode(cache: Any, key: Any, query: Any, position: Any) -> Any:
    """A new key in a cache that is sharded by position, and the attention over it."""
    cache = jax.lax.dynamic_update_slice(cache, key[:, None], (0, position, 0))
    scores = jnp.einsum("bd,bsd->bs", query, cache)
    scores = jnp.where(jnp.arange(cache.shape[1]) <= position, scores, -jnp.inf)
    return cache, jnp.einsum("bs,bsd->bd", jax.nn.softmax(scores), cache)


def _partly_manual(x: Any, w: Any) -> Any:
    """Written per device along `data`; `model` is left to propagation."""
    return jax.shard_map(
        lambda x, w: jax.lax.psum(jnp.tanh(x @ w).sum(0), "data"),
        mesh=mesh(),
        in_specs=(P("data"), P()),
        out_specs=P(),
        axis_names={"data"},
    )(x, w)


_KEYS = np.asarray(jax.random.key_data(jax.random.split(jax.random.key(0), 8)))
PROGRAMS = {
    "constraint that does not divide": Reported(
        _constrained, (_floats(8, 16), _floats(16, 7)), (P("model"), None), True
    ),
    "permutation of each row by keys": Reported(
        lambda keys, x: jax.vmap(lambda key, row: jax.random.permutation(jax.random.wrap_key_data(key), row))(keys, x),
        (_KEYS, _floats(8, 16)),
        (P("data"), P("data", "model")),
    ),
    "permutation of each row by take_along_axis": Reported(
        lambda x, noise: jnp.take_along_axis(x, jnp.argsort(noise, axis=1), axis=1),
        (_floats(8, 16), _floats(8, 16)),
        (P("data", "model"), P("data")),
    ),
    "permutation of each row by an index": Reported(
        lambda x, order: x[jnp.arange(x.shape[0])[:, None], order],
        (_floats(8, 16), _ints(16, 8, 16)),
        (P("data", "model"), P("data")),
    ),
    "rows by number, and columns by index": Reported(
        lambda x, index: x[jnp.arange(16)[:, None], index, jnp.arange(5)[None]],
        (
            _floats(16, 12, 8),
            _ints(12, 16, 5) - 6,
        ),
        (P("data", None, "model"), P("data")),
    ),
    "rows by number, with an index that is whole": Reported(
        lambda x, index: x[jnp.arange(16)[:, None], index], (_floats(16, 12, 8), _ints(12, 16, 5)), (P("data"), P())
    ),
    "rows by number in reverse": Reported(
        lambda x, index: x[jnp.arange(16)[::-1][:, None], index], (_floats(16, 12), _ints(12, 16, 5)), (P("data"), P())
    ),
    "columns by number": Reported(
        lambda x, index: x[index, jnp.arange(12)], (_floats(16, 12, 8), _ints(16, 12)), (P(None, "data"), P())
    ),
    "add to rows by number": Reported(
        lambda x, index, y: jnp.asarray(x).at[jnp.arange(16)[:, None], index].add(y),
        (_floats(16, 12, 8), _ints(12, 16, 5), _floats(16, 5, 8)),
        (P("data"), P("data"), P(None, None, "model")),
    ),
    "set rows inside a shard, and across two": Reported(
        lambda x, y: jnp.asarray(x).at[1:3].set(y[:2]).at[7:10, 2:4].set(y[2:, :2]),
        (_floats(16, 8), _floats(5, 8)),
        (P("data", "model"), None),
    ),
    "set a part of a sharded dimension": Reported(
        lambda x, y: jnp.asarray(x).at[:, 3:9].set(y), (_floats(8, 16), _floats(8, 6)), (P("data", "model"), None)
    ),
    "set rows of a sharded dimension by index": Reported(
        lambda x, rows, y: jnp.asarray(x).at[rows].set(y),
        (_floats(16, 8), np.array([3, 14, 0, 7], np.int32), _floats(4, 8)),
        (P("data", "model"), None, P(None, "model")),
    ),
    "gradient of an embedding with a sharded vocabulary": Reported(
        jax.grad(_looked_up), (_floats(32, 16), _ints(32, 8, 4)), (P("model"), P("data"))
    ),
    "gradient of an embedding with sharded features": Reported(
        jax.grad(_looked_up), (_floats(32, 16), _ints(32, 8, 4)), (P(None, "model"), P("data"))
    ),
    "cross entropy over a sharded vocabulary": Reported(
        jax.value_and_grad(_cross_entropy, (0, 1)),
        (_floats(8, 16), _floats(16, 32), _ints(32, 8)),
        (P("data"), P(None, "model"), P("data")),
    ),
    "argmax over a sharded vocabulary": Reported(
        lambda hidden, table: jnp.argmax(hidden @ table, axis=-1),
        (_floats(8, 16), _floats(16, 32)),
        (P("data"), P(None, "model")),
    ),
    "cache sharded by position": Reported(
        _decode,
        (_floats(4, 16, 8), _floats(4, 8), _floats(4, 8), np.int32(11)),
        (P(None, "data"), None, P(None, "model"), None),
    ),
    "running sum along a sharded dimension": Reported(
        lambda x: jnp.cumsum(x, axis=1), (_floats(4, 16),), (P(None, ("data", "model")),)
    ),
    "sum along a sharded dimension": Reported(lambda x: x.sum(1), (_floats(4, 16),), (P("model", "data"),)),
    "sort of a sharded dimension": Reported(lambda x: jnp.sort(x, axis=0), (_floats(16, 6),), (P("data", "model"),)),
    "order of a sharded dimension": Reported(lambda x: jnp.argsort(x, axis=0), (_floats(16, 6),), (P("data"),)),
    "partly manual": Reported(_partly_manual, (_floats(8, 16), _floats(16, 12)), (P("data"), P(None, "model")), True),
}
