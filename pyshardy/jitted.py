"""`pyshardy.jit`: as `jax.jit`, sharded by pyshardy."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

import jax
import jax.numpy as jnp

from pyshardy.api import partition, propagate
from pyshardy.errors import UsageError
from pyshardy.frontend.from_jax import JaxSignature, load_function
from pyshardy.frontend.jax_private import key_name
from pyshardy.ir.module import Module
from pyshardy.passes.partition_options import PartitionOptions
from pyshardy.propagation.options import PropagateOptions
from pyshardy.results.engines import Engine
from pyshardy.results.partition import Partition
from pyshardy.results.propagation import Propagation
from pyshardy.running import run

_FOR_JIT = {"static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "keep_unused", "inline"}


def jit(
    function: Callable[..., Any],
    *,
    mesh: Any = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    options: PropagateOptions = PropagateOptions(),
    partition_options: PartitionOptions = PartitionOptions(),
    engine: Engine | str = Engine.LOCAL,
    **jit_options: Any,
) -> Jitted:
    """A function that runs as `jax.jit` runs it, on programs that pyshardy propagates and partitions.

    Args:
        function: A function that is not jitted.
        mesh: The mesh, as for `load`. Without devices the function can be loaded, propagated and partitioned, and runs
            if JAX has that many.
        in_shardings: As for `load`.
        out_shardings: As for `load`.
        options: How shardings propagate.
        partition_options: How the program of one device is made.
        engine: What runs it, as for `run`.
        jit_options: Options of `jax.jit` by name, such as `static_argnums` and `donate_argnums`.

    Raises:
        UsageError: An option that is none, or a function that is jitted already.

    >>> from jax.sharding import PartitionSpec as P
    >>> double = jit(lambda x: x * 2, mesh={"data": 1}, in_shardings=P("data"))
    >>> double(jax.numpy.arange(4)).tolist()
    [0, 2, 4, 6]
    """
    unknown = sorted(jit_options.keys() - _FOR_JIT)
    if unknown:
        raise UsageError("jitting a function", got=f"the option {unknown[0]}", needed=", ".join(sorted(_FOR_JIT)))
    if hasattr(function, "lower"):
        raise UsageError("jitting a function", got="one that is jitted already", needed="the function itself")
    shared = {"mesh": mesh, "in_shardings": in_shardings, "out_shardings": out_shardings, **jit_options}
    return Jitted(function, shared, options, partition_options, engine)


class Jitted:
    """What `jit` gives: call it, or look at the program for some arguments.

    Args:
        function: The function.
        load_options: How it is loaded.
        options: How shardings propagate.
        partition_options: How the program of one device is made.
        engine: What runs it.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        load_options: dict[str, Any],
        options: PropagateOptions,
        partition_options: PartitionOptions,
        engine: Engine | str,
    ) -> None:
        update_wrapper(self, function)
        self._function = function
        self._load_options = load_options
        self._options = options
        self._partition_options = partition_options
        self._engine = engine
        self._programs: dict[Any, Partition] = {}

    def lower(self, *args: Any, **kwargs: Any) -> Module:
        """The module for these arguments, arrays or `jax.ShapeDtypeStruct`s."""
        shared = {name: value for name, value in self._load_options.items() if name not in _FOR_JIT}
        keywords = {name: value for name, value in self._load_options.items() if name in _FOR_JIT} | kwargs
        return load_function(self._function, args, keywords=keywords, **shared)

    def propagate(self, *args: Any, **kwargs: Any) -> Propagation:
        """The module with a sharding for every tensor."""
        return propagate(self.lower(*args, **kwargs), self._options)

    def partition(self, *args: Any, **kwargs: Any) -> Partition:
        """The program of one device; made once for arguments of the same shapes, types and static values."""
        key = self._key(args, kwargs)
        found = self._programs.get(key)
        if found is None:
            module = self.lower(*args, **kwargs)
            found = self._programs[key] = partition(module, self._partition_options, self._options)
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results of the function, as it returns them."""
        program = self.partition(*args, **kwargs)
        signature: JaxSignature = program.before.origin
        leaves = self._dynamic_leaves(signature, args, kwargs)
        outputs = run(program, *(_data(leaves[leaf]) for leaf in signature.kept), engine=self._engine)
        infos = jax.tree.leaves(signature.lowered.out_info)
        return jax.tree.unflatten(signature.out_tree, [_typed(one, info) for one, info in zip(outputs, infos)])

    def _key(self, args: Any, kwargs: Any) -> Any:
        leaves, structure = jax.tree.flatten((args, kwargs))
        return structure, tuple(_kind(leaf) for leaf in leaves)

    def _dynamic_leaves(self, signature: JaxSignature, args: Any, kwargs: Any) -> list[Any]:
        """The leaves of the arguments that are not static."""
        fixed, names = (self._load_options.get(name, ()) for name in ("static_argnums", "static_argnames"))
        positions = {index % len(args) for index in ((fixed,) if isinstance(fixed, int) else fixed) if args}
        named = {names} if isinstance(names, str) else set(names)
        dynamic = tuple(arg for index, arg in enumerate(args) if index not in positions)
        tree = dynamic, {name: value for name, value in kwargs.items() if name not in named}
        leaves = [leaf for leaf in jax.tree.leaves(tree) if _is_dynamic(leaf)]
        if len(leaves) != signature.in_tree.num_leaves:
            got = f"{len(leaves)} arrays for {signature.in_tree.num_leaves}"
            raise UsageError(
                "calling a jitted function", got=got, needed="static arguments by position or keyword alike"
            )
        return leaves


def _is_dynamic(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") or isinstance(leaf, (bool, int, float, complex))


def _kind(leaf: Any) -> Any:
    """What a leaf has in common with those that the same program is for."""
    if hasattr(leaf, "dtype") and hasattr(leaf, "shape"):
        return leaf.shape, str(leaf.dtype), getattr(leaf, "weak_type", False)
    return type(leaf), leaf


def _data(leaf: Any) -> Any:
    if _is_key(leaf):
        return jax.random.key_data(leaf)
    return leaf if hasattr(leaf, "shape") else jax.numpy.asarray(leaf)


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _typed(array: Any, info: Any) -> Any:
    """An output under the type that the function gives it: the data of keys become keys again."""
    if not _is_key(info):
        return array
    return jax.random.wrap_key_data(array, impl=key_name(info.dtype))
