"""The logical axes of arrays in trees, as models of flax and haliax name them. Neither is imported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jax

from pyshardy.core.jax_values import is_partition_spec
from pyshardy.core.text import named_type
from pyshardy.errors import UsageError
from pyshardy.frontend.jax_leaves import is_array

_DOING = "reading logical axes"
_NEEDED = "for every dimension the name of one logical axis or None, each name once"
_METADATA = ("out_sharding", "sharding", "sharding_names")
"""What versions of nnx call the logical axes of a variable."""


def logical_names(trees: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str | None, ...]]]:
    """The path and the logical axes of every array, or of every tree of arrays that have the same.

    Logical axes are a `PartitionSpec` or a tuple of names, those of a box of linen (`nn.LogicallyPartitioned`), of a
    variable of nnx, or of a named array of haliax. Another array has none.

    Args:
        trees: Trees of these by the name of the argument.

    Raises:
        UsageError: The logical axes of an array are something else.

    >>> list(logical_names({"params": {"w": ("embed", None)}, "x": jax.ShapeDtypeStruct((2,), "float32")}))
    [("params['w']", ('embed', None)), ('x', ())]
    """
    for argument, tree in trees.items():
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree, is_leaf=_has_names):
            name = argument + jax.tree_util.keystr(path)
            yield name, _checked(name, _names(leaf, name))


def _has_names(node: Any) -> bool:
    return is_partition_spec(node) or _is_plain(node) or _is_box(node) or _is_variable(node) or _is_named_array(node)


def _names(leaf: Any, name: str) -> Any:
    if _is_variable(leaf):
        value = leaf.get_value() if hasattr(leaf, "get_value") else leaf.value
        if is_partition_spec(value):  # a state that `nnx.get_partition_spec` returned
            return value
        held = leaf.get_metadata()
        names = next((held[key] for key in _METADATA if held.get(key)), ())
        return _stacked(names, held) if isinstance(names, tuple) else names
    if _is_box(leaf):
        return leaf.names
    if _is_named_array(leaf):
        return tuple(axis.name for axis in leaf.axes)
    if is_partition_spec(leaf) or _is_plain(leaf):
        return leaf
    if is_array(leaf):
        return ()
    needed = "PartitionSpecs, boxes of linen, variables of nnx, named arrays of haliax, or arrays without names"
    raise UsageError(_DOING, where=name, got=named_type(leaf), needed=needed)


def _stacked(names: tuple[Any, ...], held: Mapping[str, Any]) -> tuple[Any, ...]:
    """The names with that of the layers, which MaxText keeps beside those of a variable of stacked layers."""
    layers, at = held.get("partition_name"), held.get("param_scan_axis")
    if layers is None or not isinstance(at, int) or layers in names:
        return names
    return (*names[:at], layers, *names[at:])


def _checked(where: str, names: Any) -> tuple[str | None, ...]:
    found = tuple(names) if isinstance(names, (tuple, list)) or is_partition_spec(names) else (names,)
    named = [name for name in found if name is not None]
    if not all(isinstance(name, str) for name in named) or len(set(named)) < len(named):
        raise UsageError(_DOING, where=where, got=repr(names), needed=_NEEDED)
    return found


def _is_plain(node: Any) -> bool:
    """Whether this is a tuple of names and None."""
    return type(node) is tuple and any(map(_is_name, node)) and all(one is None or _is_name(one) for one in node)


def _is_name(value: Any) -> bool:
    return isinstance(value, str)


def _is_box(node: Any) -> bool:
    """Whether this is a box of linen with the names of axes."""
    return hasattr(node, "names") and hasattr(node, "value") and hasattr(node, "unbox")


def _is_variable(node: Any) -> bool:
    """Whether this is a variable of nnx."""
    return hasattr(node, "get_metadata") and hasattr(node, "has_metadata")


def _is_named_array(node: Any) -> bool:
    """Whether this is a `NamedArray` of haliax."""
    axes = getattr(node, "axes", None)
    return hasattr(node, "array") and isinstance(axes, tuple) and all(hasattr(axis, "name") for axis in axes)
