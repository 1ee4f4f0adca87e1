"""The leaves of arguments: arrays, shardings, and what is static, which goes around JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec

from pyshardy.core.sharding import TensorSharding
from pyshardy.core.spec import PartitionSpec as Spec

_SCALARS = (bool, int, float, complex, np.generic)


def is_sharding(leaf: Any) -> bool:
    """Whether this is a leaf of a tree of shardings."""
    return leaf is None or isinstance(leaf, (jax.sharding.Sharding, PartitionSpec, TensorSharding, Spec))


@jax.tree_util.register_pytree_node_class
class StaticLeaf:
    """A leaf of an argument that is not an array, such as an activation function. It is part of the tree structure.

    Args:
        value: The leaf.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticLeaf) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)

    def tree_flatten(self) -> tuple[tuple[()], StaticLeaf]:
        """No children."""
        return (), self

    @classmethod
    def tree_unflatten(cls, found: StaticLeaf, _: Any) -> StaticLeaf:
        """The same leaf."""
        return found


def is_static(node: Any) -> bool:
    """Whether this is a leaf that is not an array."""
    return isinstance(node, StaticLeaf)


def is_array(leaf: Any) -> bool:
    """Whether a leaf is an array or a shape."""
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def is_argument(leaf: Any) -> bool:
    """Whether JAX accepts a leaf as an argument that is not static."""
    return is_array(leaf) or isinstance(leaf, _SCALARS) or hasattr(leaf, "__jax_array__")


def filtered(tree: Any, keeps: Callable[[Any], bool]) -> Any:
    """A tree in which other leaves are `StaticLeaf`."""
    return jax.tree.map(lambda leaf: leaf if keeps(leaf) else StaticLeaf(leaf), tree)


def has_static(tree: Any) -> bool:
    """Whether arguments have leaves that are not for JAX."""
    return any(map(is_static, jax.tree.leaves(tree, is_leaf=is_static)))


def taking_static(function: Callable[..., Any], keeps: Callable[[Any], bool] = is_argument) -> Callable[..., Any]:
    """The function for arguments with `StaticLeaf` leaves; its results may have such leaves too.

    Args:
        function: The function.
        keeps: Whether a leaf of the results is not static.
    """

    @wraps(function, updated=())
    def taking(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = jax.tree.map(
            lambda node: node.value if is_static(node) else node, (args, kwargs), is_leaf=is_static
        )
        return filtered(function(*args, **kwargs), keeps)

    return taking


def is_filtered(function: Any) -> bool:
    """Whether this is a function of `equinox.filter_jit`, for which every leaf that is not an array is static."""
    return (
        type(function).__module__.startswith("equinox.")
        and hasattr(function, "__wrapped__")
        and hasattr(function, "lower")
    )


def unfiltered(
    function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any], Mapping[str, Any]]:
    """The function inside `equinox.filter_jit`, with arguments and options for `jax.jit`."""
    first, rest = (getattr(function, f"donate_{which}", False) for which in ("first", "rest"))
    donated = tuple(index for index in range(len(args)) if (rest if index else first))
    if donated and "donate_argnums" not in options:
        options = {**options, "donate_argnums": donated}
    args, kwargs = filtered((tuple(args), dict(kwargs)), is_array)
    return taking_static(function.__wrapped__, is_array), args, kwargs, options
