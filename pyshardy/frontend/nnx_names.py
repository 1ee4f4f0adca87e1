"""Names for the inputs and outputs of functions under `flax.nnx.jit`, which numbers the arrays of a model.

`nnx.jit` passes the arrays of a model to JAX as a list, so the kernel of a layer is called `model.states[0][7]`. Here
it gets its name in the model, `model.up.kernel.value`, as with `nnx.jit(..., graph=False)`.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import jax
from jaxlib.mlir import ir

from pyshardy.core.text import quote
from pyshardy.frontend.interface import input_tensors, output_tensors
from pyshardy.frontend.jax_nnx import is_model, is_split_model
from pyshardy.ir.functions import main_function
from pyshardy.ir.locations import named_location
from pyshardy.ir.module import Module

_INPUT = re.compile(r"(\w+)\.states\[0\]\[(\d{1,9})\]")
_OUTPUT = re.compile(r"result\[0\]\[(\d{1,9})\]\.states\[0\]\[(\d{1,9})\]")
_RESULT_INFO = "jax.result_info"


def with_nnx_names(module: Module, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Module:
    """The module with the names in models instead of numbers, where they are known.

    Args:
        module: The module of the function.
        function: The function under `nnx.jit`.
        args: The positional arguments.
        kwargs: The keyword arguments.
    """
    try:
        bound = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return module
    by_name = {name: _paths(value) for name, value in bound.items()}
    by_position = [_paths(value) for value in args]
    root = module.copy_root()
    main = main_function(root)
    for tensor in input_tensors(root):
        match = _INPUT.fullmatch(tensor.name)
        found = None if match is None else _path(by_name.get(match[1], ()), int(match[2]), tensor.shape)
        if match is not None and found is not None:
            arg = main.region.blocks[0].args[tensor.index]
            with module.context:
                arg.location = named_location(match[1] + found, arg.location)
    results = list(main.attrs.get("res_attrs") or ())
    for tensor in output_tensors(root):
        match = _OUTPUT.fullmatch(tensor.name)
        if match is not None and int(match[1]) < len(by_position):
            found = _path(by_position[int(match[1])], int(match[2]), tensor.shape)
            if found is not None:
                with module.context:
                    info = ir.Attribute.parse(quote(f"result[0][{match[1]}]{found}"))
                results[tensor.index] = results[tensor.index].with_value(_RESULT_INFO, info)
    if results:
        main.set_attr("res_attrs", tuple(results))
    return module.with_root(root)


def with_lowered_names(module: Module, function: Any, lowered: jax.stages.Lowered) -> Module:
    """The same where no arguments are there: models are put together again from what `lowered` keeps of them.

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
    return with_nnx_names(module, function, args, kwargs)


Paths = Sequence[tuple[str, tuple[int, ...]]]


def _paths(value: Any) -> Paths:
    """The path and the shape of every array of a model, in the order of `nnx.jit`; empty if it is not a model."""
    nnx = sys.modules["flax.nnx"]
    if not is_model(value):
        return ()
    flat = nnx.to_flat_state(nnx.state(value))
    return [(_text(path), tuple(getattr(variable.get_value(), "shape", ()))) for path, variable in flat]


def _text(path: Sequence[Any]) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path) + ".value"


def _path(paths: Paths, number: int, shape: tuple[int, ...]) -> str | None:
    """The path of an array of this shape, including the additional dimensions of a key's data."""
    if number >= len(paths) or shape[: len(paths[number][1])] != paths[number][1]:
        return None
    return paths[number][0]
