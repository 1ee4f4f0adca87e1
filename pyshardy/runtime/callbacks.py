"""Python functions that a program calls, and the tokens that order these calls.

A call names its function by a number. JAX collects the functions while it lowers a program. So an extra op passes them
to XLA, and is not in the result. Every device waits for all outputs, so tokens among a program's inputs and outputs are
not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax.extend.core
import numpy as np

from pyshardy.core.text import format_symbol
from pyshardy.errors import ShardyError
from pyshardy.frontend.from_jax import JaxSignature
from pyshardy.frontend.jax_private import mlir
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.functions import change_border_attrs, main_function, return_op
from pyshardy.ir.locations import format_location
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, ValueType, walk
from pyshardy.ir.strings import string_value
from pyshardy.runtime.arrays import is_token, jax_dtype

_BORDER = ("arg_attrs", "res_attrs")
_ALIAS = "tf.aliasing_output"


def drop_tokens(root: Op) -> None:
    """Remove tokens from the inputs and outputs of the main function; it creates a token instead."""
    main = main_function(root)
    block, returned = main.region.blocks[0], return_op(main)
    args = [not is_token(value) for value in block.args]
    results = [not is_token(value) for value in returned.operands]
    if all(args) and all(results):
        return
    for kind, kept in zip(_BORDER, (args, results)):
        if entries := main.attrs.get(kind):
            main.set_attr(kind, tuple(entry for entry, keep in zip(entries, kept) if keep))
    change_border_attrs(main, lambda attrs: attrs.without(_ALIAS))  # it counts results
    for value in [value for value, keep in zip(block.args, args) if not keep]:
        value.replace_uses(block.prepend(Op("stablehlo.create_token", (), [value.type], location=main.location)).result)
    block.args = [value for value, keep in zip(block.args, args) if keep]
    for index, value in enumerate(block.args):
        value.index = index
    operands = [value for value, keep in zip(returned.operands, results) if keep]
    Op(returned.name, operands, (), returned.attrs, location=returned.location).insert_before(returned)
    returned.erase()
    main.set_attr("function_type", ([value.type for value in block.args], [value.type for value in operands]))


class Callback:
    """A Python function that a program calls.

    If it fails, the program continues with zeros. If the device stopped, the others would wait for it for ever.

    Args:
        function: The function. It takes the tokens and arrays that the op takes, and returns the op's results.
        results: The types of the op's results.

    Attributes:
        error: The error of its first failure; None if it has not failed.
    """

    def __init__(self, function: Callable[..., Any], results: Sequence[ValueType]) -> None:
        self.error: Exception | None = None
        self._function = function
        self._results = [(type.shape, type.element) for type in results]

    def __call__(self, *args: Any) -> Any:
        """Call the function; return its results, or zeros if it fails."""
        try:
            return self._function(*args)
        except Exception as error:
            self.error = self.error or error
            return tuple(
                args[index] if shape is None else np.zeros(shape, jax_dtype(element))
                for index, (shape, element) in enumerate(self._results)
            )


def raise_failures(callbacks: Sequence[Callback]) -> None:
    """Raise the error of a Python function that has failed since the last call of this.

    Raises:
        ShardyError: A function has failed.
    """
    errors = [callback.error for callback in callbacks if callback.error is not None]
    for callback in callbacks:
        callback.error = None
    if errors:
        got = f"{type(errors[0]).__name__}: {errors[0]}"
        raise ShardyError("calling back into Python", got=got, needed="a function that does not fail") from errors[0]


def callbacks_of(module: Module) -> list[Callback]:
    """The Python functions that a module calls, by their numbers.

    Raises:
        ShardyError: A function is unknown, because another process has traced it.
    """
    known = module.origin.callbacks if isinstance(module.origin, JaxSignature) else ()
    found = {_number(op, len(known)): op.results for op in _calls(module.root)}
    types = [[result.type for result in found.get(number, ())] for number in range(len(known))]
    return [Callback(function, results) for function, results in zip(known, types)] if found else []


def calls_python(root: Op) -> bool:
    """Whether a program calls back into Python."""
    return any(True for _ in _calls(root))


def _calls(root: Op) -> Iterator[Op]:
    for op in walk(root):
        target = string_value(op.attrs["call_target_name"]) if op.name == "stablehlo.custom_call" else ""
        if "python" in target and "callback" in target:
            yield op


def _number(op: Op, count: int) -> int:
    """The number of the function that an op calls, below the number of functions."""
    config = op.attrs.get("mhlo.backend_config")
    number = int(config["index"].value) if config is not None and "index" in config else None
    if number is None or number >= count:
        raise ShardyError(
            "running a module",
            where=format_location(op.location),
            got=f"{format_symbol(string_value(op.attrs['call_target_name']))}, a call back into Python",
            needed="a Python function that this process has, as in a module loaded from a JAX function here",
            hint="load the function, not its text",
        )
    return number


def call_per_device(root: Op, attrs: AttrTable) -> None:
    """Let every device of a per-device program make its own calls; otherwise XLA's partitioner would intervene."""
    for op in _calls(root):
        target = string_value(op.attrs["call_target_name"])
        op.set_attr("call_target_name", attrs.parse(f'"{target.replace("_partitioned_", "_")}"'))


_HOLDER = jax.extend.core.Primitive("pyshardy_callbacks")
_HOLDER.multiple_results = True


def with_callbacks(values: Sequence[jax.Array], callbacks: Sequence[Any]) -> list[jax.Array]:
    """Attach Python functions to the program that computes the values; return the values."""
    found: list[jax.Array] = _HOLDER.bind(*values, callbacks=tuple(callbacks))
    return found


def _same_types(*types: Any, callbacks: Any) -> list[Any]:
    return list(types)


def _lower(context: Any, *values: Any, callbacks: Any) -> list[Any]:
    for callback in callbacks:
        context.module_context.add_host_callback(callback)
    return list(values)


_HOLDER.def_abstract_eval(_same_types)
mlir.register_lowering(_HOLDER, _lower)
