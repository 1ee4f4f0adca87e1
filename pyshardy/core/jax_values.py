"""Reads meshes and partition specs of JAX, and plain Python values, without importing JAX.

JAX's values are recognized by their attributes: a mesh by `axis_names` and `shape_tuple`, a `NamedSharding` by
`mesh` and `spec`, a `PartitionSpec` by being a sequence of names, tuples of names, None and `UNCONSTRAINED`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyshardy.core.given import as_tuple
from pyshardy.core.text import named_type
from pyshardy.errors import InvalidShardingError

Pairs = tuple[tuple[Any, Any], ...]
JIT_OPTIONS = frozenset(
    ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "keep_unused", "inline")
)
"""Keywords that are for `jax.jit`; all others are arguments of the function."""
_UNCONSTRAINED = "UnconstrainedSingleton"
_NEEDED_AXES = "names with sizes, such as {'x': 2} or [('x', 2)], or a mesh of JAX"


def is_jax_mesh(value: object) -> bool:
    """Whether a value is a `jax.sharding.Mesh` or an `AbstractMesh`."""
    return hasattr(value, "axis_names") and hasattr(value, "shape_tuple")


def is_named_sharding(value: object) -> bool:
    """Whether a value is a `jax.sharding.NamedSharding`."""
    return hasattr(value, "spec") and is_jax_mesh(getattr(value, "mesh", None))


def is_partition_spec(value: object) -> bool:
    """Whether a value is a `jax.sharding.PartitionSpec`."""
    return hasattr(value, "unreduced") and hasattr(value, "partitions")


def mesh_axes(axes: Any) -> Pairs:
    """Pairs of name and size, from a mapping, from pairs, or from a mesh of JAX; names and sizes are not checked.

    >>> mesh_axes({"x": 2})
    (('x', 2),)
    """
    if is_jax_mesh(axes):
        return tuple(axes.shape_tuple)
    if isinstance(axes, Mapping):
        return tuple(axes.items())
    doing = "making a mesh"
    found = []
    for pair in as_tuple(axes, doing, _NEEDED_AXES):
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise InvalidShardingError(doing, got=f"{pair!r} among the axes", needed=_NEEDED_AXES)
        found.append((pair[0], pair[1]))
    return tuple(found)


def mesh_device_ids(axes: Any) -> tuple[int, ...] | None:
    """The device order of a mesh of JAX; None if it has no devices, or if they are not the first ones of JAX.

    `run(devices=...)` chooses the devices of a mesh; the ids only say in which order the first devices lie on it.
    """
    if not is_jax_mesh(axes):
        return None
    try:
        devices = axes.devices
    except (AttributeError, ValueError):  # an AbstractMesh has no devices
        return None
    ids = tuple(device.id for device in devices.flat)
    return ids if sorted(ids) == list(range(len(ids))) else None


def parsed_spec(spec: Any, doing: str) -> list[tuple[Sequence[Any], bool]]:
    """Axes and openness of every dimension, from a `PartitionSpec`, or from names, lists of names and None.

    >>> parsed_spec(["x", None, ("y", "z")], "sharding a tensor")
    [(('x',), False), ((), False), (('y', 'z'), False)]
    """
    spec = spec_partitions(spec)
    if isinstance(spec, str) or not isinstance(spec, Iterable):
        raise InvalidShardingError(doing, got=repr(spec), needed="one sharding per dimension", hint=f"[{spec!r}]")
    return [_entry(entry, doing) for entry in spec]


def spec_partitions(spec: Any) -> Any:
    """The entries of a `PartitionSpec` as an iterable, also of our own, which is not one; other values unchanged."""
    return spec.partitions if is_partition_spec(spec) else spec


def _entry(entry: Any, doing: str) -> tuple[Sequence[Any], bool]:
    if entry is None:
        return (), False
    if type(entry).__name__ == _UNCONSTRAINED:
        return (), True
    if isinstance(entry, str):
        return (entry,), False
    if isinstance(entry, (list, tuple)):
        return tuple(entry), False
    raise InvalidShardingError(
        doing,
        got=f"{named_type(entry)} for a dimension",
        needed="a DimSharding, the name of an axis, a list of names, or None",
    )


def spec_unreduced(spec: Any) -> tuple[tuple[str, ...], str]:
    """The axes along which a `PartitionSpec` leaves partial values, and how these combine."""
    kind = getattr(spec, "unreduced_kind", None)
    return tuple(sorted(getattr(spec, "unreduced", None) or ())), "sum" if kind is None else str(
        getattr(kind, "name", kind)
    )


Tree = Any
"""A nest of lists, dictionaries and the like, with arrays, shapes or shardings as its leaves."""
