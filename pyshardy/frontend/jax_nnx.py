"""Calls a function under `flax.nnx.jit` with another program, and gives its shardings as states of the models.

`nnx.jit` splits models into states, calls the jitted function on these, and updates the models with the result. Here it
does the same, but calls another program instead of the jitted function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import jax

from pyshardy.core.jax_values import Tree
from pyshardy.frontend.jax_leaves import is_array, is_sharding

_FIRST, _SECOND = ".states[0][0]", ".states[0][1]"
"""What `nnx.jit` adds to the name of a model or a variable for its arrays."""


def is_nnx_jitted(function: Any) -> bool:
    """Whether a function is under `flax.nnx.jit`; flax is not imported to find out."""
    return type(function).__module__.startswith("flax.nnx.") and hasattr(function, "lower")


def nnx_function(stage: Any) -> Any:
    """The function under `flax.nnx.jit` whose traced or lowered form this is; None for another form."""
    return getattr(stage, "jit_wrapped", None) if type(stage).__module__.startswith("flax.nnx.") else None


def name_of_variable(name: str, names: Collection[str]) -> str:
    """The name of a variable that is handed to JAX alone, such as a gradient in an `nnx.State`.

    `nnx.jit` numbers its one array, behind the path of the variable.

    Args:
        name: The name that JAX was given.
        names: All these names.

    Returns:
        The name; empty if an array is one of several.

    >>> name_of_variable("grads['up']['kernel'].states[0][0]", ())
    "grads['up']['kernel'].value"
    >>> name_of_variable("model.states[0][0]", ("model.states[0][0]", "model.states[0][1]"))
    ''
    """
    path = name.removesuffix(_FIRST)
    return f"{path}.value" if path != name and path + _SECOND not in names else ""


@dataclass(frozen=True, slots=True)
class NnxCall:
    """A function under `nnx.jit`, and the models among its arguments.

    Attributes:
        function: The function.
        states: The arguments with the state of a model, of shapes alone, in the place of the model.
    """

    function: Any
    states: tuple[Any, ...]

    def run(self, program: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """What the function returns; models among the arguments are updated as it updates them.

        Args:
            program: What takes and returns the trees that `nnx.jit` makes of arguments and results.
            args: The positional arguments.
            kwargs: The keyword arguments.
        """
        other = copy(self.function)
        other.jitted_fn = program
        return other(*args, **kwargs)

    def input_states(self, args: Tree) -> Tree:
        """Shardings for positional arguments, those of a model as its state: `jax.device_put` takes both."""
        if type(self.function).__name__ != _SPLIT_FORM or len(args) != len(self.states):
            return args
        return tuple(map(_with_states, self.states, args))

    def result(self, tree: Tree) -> Tree:
        """The part of a result that the function returns; the updated models come before or after it."""
        found = tree[-1] if type(self.function).__name__ == _SPLIT_FORM else tree[0]
        return jax.tree.map(_of_variable, found, is_leaf=_is_split)


_SPLIT_FORM = "JitWrapped"
"""The form of `nnx.jit` that turns models into lists; others, for `graph=False`, keep them as trees."""
_SPLIT_MODEL = "NodeStates"
"""The class of a split model: lists of arrays, and the data to put the model together again."""


def nnx_call(function: Any, args: Sequence[Any]) -> NnxCall:
    """The data to call a function under `nnx.jit` again.

    Args:
        function: The function.
        args: The positional arguments that it was lowered for.
    """
    nnx = sys.modules["flax.nnx"]

    def shapes(node: Any) -> Any:
        return jax.tree.map(_shape, nnx.state(node) if is_model(node) else node)

    return NnxCall(function, tuple(jax.tree.map(shapes, arg, is_leaf=is_model) for arg in args))


def is_model(value: Any) -> bool:
    """Whether `nnx.jit` splits a value into states: a module, an optimizer, metrics, or another object of nnx."""
    nnx = sys.modules["flax.nnx"]
    return isinstance(value, getattr(nnx, "Pytree", None) or nnx.Object)


def is_split_model(node: Any) -> bool:
    """Whether a node of a tree is a model as `nnx.jit` splits it."""
    return type(node).__name__ == _SPLIT_MODEL


def _shape(leaf: Any) -> Any:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if is_array(leaf) else leaf


def _is_state(node: Any) -> bool:
    return isinstance(node, sys.modules["flax.nnx"].State)


def _with_states(states: Any, shardings: Any) -> Any:
    """The shardings of an argument, those of models as states; unchanged if the form of the argument is unknown."""
    try:
        return jax.tree.map(_as_state, states, shardings, is_leaf=_is_state)
    except ValueError:  # such as a variable by itself
        return jax.tree.map(_of_variable, shardings, is_leaf=_is_split)


def _is_split(node: Any) -> bool:
    return is_sharding(node) or is_split_model(node)


def _of_variable(node: Any) -> Any:
    """The sharding of a variable that was split; other nodes unchanged."""
    leaves = [node] if is_sharding(node) else jax.tree.leaves(node, is_leaf=is_sharding)
    return leaves[0] if len(leaves) == 1 else node


def _as_state(state: Any, shardings: Any) -> Any:
    """The shardings of a model as its state; unchanged if they are in groups, as `nnx.StateSharding` makes them."""
    if not _is_state(state) or not is_split_model(shardings) or len(shardings.states) != 1:
        return shardings
    leaves, structure = jax.tree.flatten(state)
    found = jax.tree.leaves(shardings, is_leaf=is_sharding)
    return jax.tree.unflatten(structure, found) if len(found) == len(leaves) else shardings
