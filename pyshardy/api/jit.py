"""`pyshardy.jit`: like `jax.jit`, with shardings propagated and partitioned by pyshardy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import update_wrapper
from inspect import signature
from typing import Any

import jax

from pyshardy.api.partition import partition
from pyshardy.api.propagate import propagate
from pyshardy.core.jax_values import JIT_OPTIONS
from pyshardy.errors import UsageError
from pyshardy.frontend.from_jax import JaxSignature, load_function
from pyshardy.frontend.jax_calls import inputs_of_call, result_of_call
from pyshardy.frontend.jax_leaves import is_argument
from pyshardy.ir.module import Module
from pyshardy.passes.partition_options import PartitionOptions
from pyshardy.propagation.options import PropagateOptions
from pyshardy.results.partition import Partition
from pyshardy.results.propagation import Propagation
from pyshardy.runtime.engine import Engine


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
    """Jit a function as `jax.jit` does, but propagate and partition it with pyshardy.

    Args:
        function: A function that is not jitted.
        mesh: The mesh, as for `load`. To lower, propagate and partition the function, no devices are needed; to call
            it, JAX must have enough devices.
        in_shardings: As for `load`.
        out_shardings: As for `load`.
        options: The options of propagation.
        partition_options: The options of partitioning.
        engine: The engine that runs the program, as for `run`.
        jit_options: Options of `jax.jit` by name, such as `static_argnums` and `donate_argnums`.

    Raises:
        UsageError: An option is unknown, or the function is jitted already.

    >>> from jax.sharding import PartitionSpec as P
    >>> double = jit(lambda x: x * 2, mesh={"data": 1}, in_shardings=P("data"))
    >>> double(jax.numpy.arange(4)).tolist()
    [0, 2, 4, 6]
    """
    unknown = sorted(jit_options.keys() - JIT_OPTIONS)
    if unknown:
        needed = f"one of {', '.join(sorted(JIT_OPTIONS))}"
        raise UsageError("jitting a function", got=f"the option {unknown[0]!r}", needed=needed)
    if hasattr(function, "lower"):
        raise UsageError("jitting a function", got="one that is jitted already", needed="the function itself")
    shared = {"mesh": mesh, "in_shardings": in_shardings, "out_shardings": out_shardings, **jit_options}
    return Jitted(function, shared, options, partition_options, engine)


class Jitted:
    """The result of `jit`: call it, or get the program for given arguments.

    Args:
        function: The function.
        load_options: The keyword arguments of `load`.
        options: The options of propagation.
        partition_options: The options of partitioning.
        engine: The engine that runs the program.
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
        shared = {name: value for name, value in self._load_options.items() if name not in JIT_OPTIONS}
        options = {name: value for name, value in self._load_options.items() if name in JIT_OPTIONS}
        if any(_is_no_array(arg) for arg in self._traced(args, kwargs)):
            jax.jit(self._function, **options).trace(*args, **kwargs)  # which refuses it
        keywords = options | kwargs
        return load_function(self._function, args, keywords=keywords, **shared)

    def propagate(self, *args: Any, **kwargs: Any) -> Propagation:
        """The propagated program for these arguments."""
        return propagate(self.lower(*args, **kwargs), self._options)

    def partition(self, *args: Any, **kwargs: Any) -> Partition:
        """The per-device program for these arguments; made once per set of shapes, types and static values."""
        key = self._key(args, kwargs)
        found = self._programs.get(key)
        if found is None:
            module = self.lower(*args, **kwargs)
            found = self._programs[key] = partition(module, self._partition_options, self._options)
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results of the function, as it returns them."""
        program = self.partition(*args, **kwargs)
        origin: JaxSignature = program.before.origin
        inputs = inputs_of_call(origin, args, kwargs)
        if inputs is None:
            needed = "the same static arguments, each by position or by keyword as before"
            raise UsageError("calling a jitted function", got="arguments that it was not lowered for", needed=needed)
        return result_of_call(origin, program.run_flat(inputs, engine=self._engine))

    def _traced(self, args: Any, kwargs: Any) -> Iterator[Any]:
        """The arguments that are not static; none if they do not fit the function."""
        try:
            given = signature(self._function).bind(*args, **kwargs).arguments
        except (TypeError, ValueError):
            return
        names = self._load_options.get("static_argnames") or ()
        numbers = self._load_options.get("static_argnums") or ()
        static = {names} if isinstance(names, str) else set(names)
        positions = (numbers,) if isinstance(numbers, int) else numbers
        positions = {position % len(args) for position in positions if args}
        fixed = [value for position, value in enumerate(args) if position in positions]
        for name, value in given.items():
            if name not in static and not any(value is other for other in fixed):
                yield value

    def _key(self, args: Any, kwargs: Any) -> Any:
        leaves, structure = jax.tree.flatten((args, kwargs))
        return structure, tuple(_kind(leaf) for leaf in leaves)


def _is_no_array(value: Any) -> bool:
    """Whether JAX refuses this as an argument, because it is neither a tree nor an array."""
    return value is not None and jax.tree_util.all_leaves([value]) and not is_argument(value)


def _kind(leaf: Any) -> Any:
    """The properties of a leaf that decide which program it needs."""
    if hasattr(leaf, "dtype") and hasattr(leaf, "shape"):
        return leaf.shape, str(leaf.dtype), getattr(leaf, "weak_type", False)
    return type(leaf), leaf
