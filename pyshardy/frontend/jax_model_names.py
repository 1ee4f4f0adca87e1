"""Names for the inputs and outputs of functions of frameworks that hand the arrays of a model to JAX as lists.

`nnx.jit` numbers the arrays of a model, so the kernel of a layer is called `model.states[0][7]`. Here it gets its name
in the model, `model.up.kernel.value`, as with `nnx.jit(..., graph=False)`. The steps of keras, such as
`model.train_step`, take lists of variables: `state[0][7]` gets the name `model['mlp/up/kernel']`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
from jaxlib.mlir import ir

from pyshardy.core.text import quote
from pyshardy.frontend.interface import input_tensors, output_tensors
from pyshardy.frontend.jax_nnx import is_model, is_nnx_jitted, is_split_model, name_of_variable
from pyshardy.ir.functions import main_function
from pyshardy.ir.locations import named_location
from pyshardy.ir.module import Module

_RESULT_INFO = "jax.result_info"
_MODEL = (("model", "trainable_variables"), ("model", "non_trainable_variables"))
_METRICS = (("metrics", "metrics_variables"),)
_KERAS_STEPS = {
    "train_step": (*_MODEL, ("optimizer", "optimizer.variables"), *_METRICS),
    "test_step": (*_MODEL, *_METRICS),
    "predict_step": _MODEL,
}
"""For each step of keras, the parts of its state: the name here, and the list of variables with the values."""

NamesInModels = Mapping[str, tuple[str, tuple[int, ...]]]
"""For the name that JAX was given: the name in the model, and the shape without what a key's data adds."""


def with_model_names(module: Module, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Module:
    """The module with the names in models instead of numbers, where they are known.

    Args:
        module: The module of the function.
        function: The function; names are known for those under `nnx.jit`, and for the steps of a keras model.
        args: The positional arguments.
        kwargs: The keyword arguments.
    """
    if is_nnx_jitted(function):
        return _renamed(module, _nnx_names(function, args, kwargs))
    owner = getattr(inspect.unwrap(function), "__self__", None)
    if any(one.__module__.startswith("keras.") for one in type(owner).__mro__):
        return _renamed(module, dict(_keras_names(owner, inspect.unwrap(function))))
    return module


def with_lowered_names(module: Module, function: Any, lowered: jax.stages.Lowered) -> Module:
    """The same without arguments: models are built again from what `lowered` keeps of them.

    Args:
        module: The module.
        function: The function under `nnx.jit`.
        lowered: JAX's own result of lowering it.
    """
    nnx = sys.modules["flax.nnx"]
    shapes = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(lowered.args_info)]

    def merged(node: Any) -> Any:
        return nnx.merge(node.graphdef, *node.states) if is_split_model(node) else node

    try:
        args, kwargs = jax.tree.map(merged, jax.tree.unflatten(lowered.in_tree, shapes), is_leaf=is_split_model)
    except Exception:  # another version of nnx, or a model that shares variables with that of another argument
        return module
    return _renamed(module, _nnx_names(function, args, kwargs))


def _renamed(module: Module, names: NamesInModels) -> Module:
    """The module with these names, where the shapes fit."""

    inputs, outputs = input_tensors(module.root), output_tensors(module.root)
    all_names = {one.name for one in (*inputs, *outputs)}

    def told(name: str, shape: tuple[int, ...]) -> str | None:
        new, wanted = names.get(name) or (name_of_variable(name, all_names), ())
        return new if new and shape[: len(wanted)] == wanted else None

    root = module.copy_root()
    main = main_function(root)
    for tensor in inputs:
        found = told(tensor.name, tensor.shape)
        if found is not None:
            arg = main.region.blocks[0].args[tensor.index]
            with module.context:
                arg.location = named_location(found, arg.location)
    results = list(main.attrs.get("res_attrs") or ())
    for tensor in outputs:
        found = told(tensor.name, tensor.shape)
        if found is not None:
            with module.context:
                info = ir.Attribute.parse(quote(found))
            results[tensor.index] = results[tensor.index].with_value(_RESULT_INFO, info)
    if results:
        main.set_attr("res_attrs", tuple(results))
    return module.with_root(root)


def _nnx_names(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> NamesInModels:
    try:
        bound = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return {}
    given = [*bound.items(), *((f"result[0][{place}]", value) for place, value in enumerate(args))]
    return {
        f"{name}.states[0][{number}]": (f"{name}{path}", shape)
        for name, value in given
        for number, (path, shape) in enumerate(_paths(value))
    }


def _paths(value: Any) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The path and the shape of every array of a model, in the order of `nnx.jit`; nothing if it is not a model."""
    nnx = sys.modules["flax.nnx"]
    for path, variable in nnx.to_flat_state(nnx.state(value)) if is_model(value) else ():
        text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
        yield f"{text}.value", tuple(getattr(variable.get_value(), "shape", ()))


def _keras_names(model: Any, step: Any) -> Iterator[tuple[str, tuple[str, tuple[int, ...]]]]:
    """Names in a step of a keras model, which takes the values of its variables, and returns them as `result[1]`."""
    state = next(iter(inspect.signature(step).parameters), "")
    for part, (name, path) in enumerate(_KERAS_STEPS.get(step.__name__, ())):
        variables: Any = model
        for attribute in path.split("."):
            variables = getattr(variables, attribute, ())
        for number, variable in enumerate(variables):
            told, shape = f"{name}[{variable.path!r}]", tuple(variable.shape)
            yield f"{state}[{part}][{number}]", (told, shape)
            yield f"result[1][{part}][{number}]", (f"result[1].{told}", shape)
