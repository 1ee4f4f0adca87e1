"""Converts the arguments of a JAX function to the inputs of its module, and the outputs to its results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from pyshardy.core.jax_values import Tree
from pyshardy.frontend.from_jax import JaxSignature
from pyshardy.frontend.jax_leaves import filtered, is_argument, is_array, is_static
from pyshardy.frontend.jax_private import key_name


class OtherArgumentsError(Exception):
    """A function is called with other arguments than it was loaded for.

    Args:
        leaf: The number of the first leaf of another shape; None if it is not that.
        shape: Its shape.
        is_static: Whether all leaves fit, and something else in the trees differs, such as a function.
    """

    def __init__(self, leaf: int | None = None, shape: tuple[int, ...] = (), is_static: bool = False) -> None:
        super().__init__()
        self.leaf = leaf
        self.shape = shape
        self.is_static = is_static


def call(
    signature: JaxSignature, args: Sequence[Any], kwargs: Mapping[str, Any], run_flat: Callable[[list[Any]], Any]
) -> Any:
    """Call a function by its program.

    Args:
        signature: The signature of the function.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        run_flat: The program: from the inputs of the module to its outputs.

    Raises:
        OtherArgumentsError: Other arguments than it was loaded for.
    """

    def called(*args: Any, **kwargs: Any) -> Any:
        inputs = inputs_of_call(signature, args, kwargs)
        if inputs is None:
            raise _other_arguments(signature, args, kwargs)
        return result_of_call(signature, run_flat(inputs))

    return called(*args, **kwargs) if signature.nnx is None else signature.nnx.run(called, args, kwargs)


def inputs_of_call(signature: JaxSignature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any] | None:
    """The inputs of the module for a call of its function; None if the function was not loaded for such arguments.

    Static arguments may be omitted. Leaves that are not arrays keep the value that they had when the function was
    loaded.

    Args:
        signature: The signature of the function.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
    """
    args_tree, kwargs_tree = signature.in_tree.children()
    infos = iter(_infos(signature))
    wanted = [_Wanted(tree, infos) for tree in args_tree.children()]
    names = kwargs_tree.node_data()[1] or ()
    by_name = {name: _Wanted(tree, infos) for name, tree in zip(names, kwargs_tree.children())}
    fixed = _fixed(signature, len(args), len(wanted))
    positional = _match(wanted, [*enumerate(args)], fixed)
    if positional is None or not set(by_name) <= set(kwargs):
        return None
    found = [by_name[name].leaves(kwargs[name]) for name in names]
    _, known = signature.example or ((), {})
    others = [(value, known.get(name, _UNKNOWN)) for name, value in kwargs.items() if name not in by_name]
    if any(leaves is None for leaves in found) or not all(_is_static_as(*other) for other in others):
        return None
    leaves = [leaf for part in (*positional, *found) for leaf in part or ()]
    return [_data(leaves[number]) for number in signature.kept]


def result_of_call(signature: JaxSignature, outputs: Sequence[Any]) -> Tree:
    """The results of a function from the outputs of its module; PRNG keys become keys again.

    Args:
        signature: The signature of the function.
        outputs: The outputs.
    """
    infos = [None] * len(outputs) if signature.lowered is None else jax.tree.leaves(signature.lowered.out_info)
    typed = [_typed(output, info) for output, info in zip(outputs, infos, strict=True)]
    tree = jax.tree.unflatten(signature.out_tree, typed)
    return jax.tree.map(lambda node: node.value if is_static(node) else node, tree, is_leaf=is_static)


def _other_arguments(signature: JaxSignature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> OtherArgumentsError:
    leaves, structure = jax.tree.flatten((tuple(args), dict(kwargs)))
    infos = _infos(signature)
    if len(leaves) != len(infos) or not all(map(is_argument, leaves)):
        return OtherArgumentsError()
    others = [number for number, (leaf, info) in enumerate(zip(leaves, infos)) if not _fits(leaf, info)]
    if structure == signature.in_tree and others:
        return OtherArgumentsError(others[0], jnp.shape(leaves[others[0]]))
    return OtherArgumentsError(is_static=not others)


class _Wanted:
    """An argument that the function was loaded with.

    Args:
        tree: Its structure.
        infos: JAX's records of the leaves from its first one on; those of this argument are consumed.
    """

    def __init__(self, tree: Any, infos: Iterator[Any]) -> None:
        self._tree = tree
        self._infos = [next(infos) for _ in range(tree.num_leaves)]

    def leaves(self, given: Any) -> list[Any] | None:
        """The leaves of an argument; None if its structure differs."""
        for keeps in _KEEPS:
            leaves, structure = jax.tree.flatten(given if keeps is None else filtered(given, keeps))
            if structure == self._tree and all(map(_fits, leaves, self._infos)):
                return leaves
        return None


_KEEPS: tuple[Callable[[Any], bool] | None, ...] = (None, is_argument, is_array)
"""The leaves that are not static: all, as for `jax.jit`, those that JAX accepts, or arrays, as for `equinox`."""


def _infos(signature: JaxSignature) -> list[Any]:
    count = signature.in_tree.num_leaves
    return [None] * count if signature.lowered is None else jax.tree.leaves(signature.lowered.args_info)


def _fits(leaf: Any, info: Any) -> bool:
    return is_argument(leaf) and (info is None or jnp.shape(leaf) == tuple(info.shape))


_UNKNOWN = object()
"""The value of a static argument that the function was loaded without."""


def _fixed(signature: JaxSignature, given: int, wanted: int) -> dict[int, Any]:
    """By position, the static arguments that the function was loaded with, for a call that includes them."""
    if given == wanted or signature.example is None:
        return {}
    values, _ = signature.example
    known = {index % given for index in signature.static_argnums}
    return {index: value for index, value in enumerate(values) if index in known or not known}


def _match(wanted: Sequence[_Wanted], args: Sequence[tuple[int, Any]], fixed: Mapping[int, Any]) -> Any:
    """The requested leaves of all arguments; None if the arguments do not fit or static ones differ."""
    if len(args) < len(wanted):
        return None
    if not args:
        return []
    index, arg = args[0]
    leaves = wanted[0].leaves(arg) if wanted else None
    rest = None if leaves is None else _match(wanted[1:], args[1:], fixed)
    if rest is not None:
        return [leaves, *rest]
    return _match(wanted, args[1:], fixed) if _is_static_as(arg, fixed.get(index, _UNKNOWN)) else None


def _is_static_as(value: Any, known: Any) -> bool:
    """Whether a static argument equals the one that the function was loaded with."""
    return known is not _UNKNOWN and not _has_arrays(value) and (value is known or bool(value == known))


def _has_arrays(tree: Any) -> bool:
    return any(map(is_array, jax.tree.leaves(tree)))


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _data(leaf: Any) -> Any:
    """A leaf as an input of the module: a key becomes its data."""
    if _is_key(leaf):
        return jax.random.key_data(leaf)
    return leaf if hasattr(leaf, "shape") else jnp.asarray(leaf)


def _typed(array: Any, info: Any) -> Any:
    """An output with the type that the function returns."""
    return jax.random.wrap_key_data(array, impl=key_name(info.dtype)) if _is_key(info) else array
