"""Functions and calls of a module, their attributes per argument and result, and their returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyshardy.core.sharding import TensorSharding
from pyshardy.core.text import format_symbol
from pyshardy.errors import InvalidModuleError
from pyshardy.ir.attributes import NO_ATTRS, Attributes
from pyshardy.ir.blocks import Value
from pyshardy.ir.codecs import LISTS
from pyshardy.ir.op import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.value_type import ValueType

SHARDING = "sdy.sharding"
RULE = "sdy.sharding_rule"
FROM_HLO = "mhlo.cross_program_prefetches"
"""An attribute of every module that was HLO, written by XLA's converter."""
CALL = "func.call"


def functions(root: Op) -> Iterator[Op]:
    """The functions at the top of a module, in order."""
    return (op for op in root.region.block if op.name == "func.func")


def is_declaration(function: Op) -> bool:
    """Whether the function has no body."""
    return not function.region.blocks


def is_public(function: Op) -> bool:
    """Whether something outside its module may call the function: it is neither private nor nested."""
    return function.attrs.get("sym_visibility") in (None, "public")


def main_function(root: Op) -> Op:
    """The only function, the one named `main`, or else the only public one.

    Raises:
        InvalidModuleError: There are several functions, or none, and no `main`.
    """
    found = list(functions(root))
    if len(found) == 1:
        return found[0]
    for function in found:
        if function.attrs["sym_name"] == "main":
            return function
    public = [function for function in found if is_public(function)]
    if len(public) == 1:
        return public[0]
    names = ", ".join(format_symbol(function.attrs["sym_name"]) for function in found)
    raise InvalidModuleError(
        "looking for the main function",
        got=f"the functions {names}" if names else "a module without functions",
        needed="a function named @main, or exactly one that is public",
    )


def entry_function(root: Op) -> Op:
    """The main function, if it has a body.

    Raises:
        InvalidModuleError: There is no main function, or it has no body.
    """
    main = main_function(root)
    if is_declaration(main):
        name = format_symbol(main.attrs["sym_name"])
        raise InvalidModuleError(
            "looking for the main function", got=f"{name} without a body", needed="one with a body"
        )
    return main


def calls(op: Op) -> list[Op]:
    """The `func.call` ops inside an op, in program order."""
    return ops_named(op, (CALL,))


def return_op(function: Op) -> Op:
    """The `func.return` of a function with a body, the last one if there are several."""
    terminators = [block.terminator for block in reversed(function.region.blocks)]
    return next((op for op in terminators if op.name == "func.return"), terminators[0])


def signature(function: Op) -> tuple[list[ValueType], list[ValueType]]:
    """The types of the arguments and results of a function with a body."""
    inputs = [arg.type for arg in function.region.blocks[0].args]
    return inputs, [value.type for value in return_op(function).operands]


def arg_attrs(function: Op, index: int) -> Attributes:
    """The attributes of an argument."""
    return _entry(function, "arg_attrs", index)


def result_attrs(function: Op, index: int) -> Attributes:
    """The attributes of a result."""
    return _entry(function, "res_attrs", index)


def _entry(function: Op, kind: str, index: int) -> Attributes:
    entries = function.attrs.get(kind)
    return entries[index] if entries else NO_ATTRS


def arg_sharding(function: Op, index: int) -> TensorSharding | None:
    """The sharding of an argument."""
    return arg_attrs(function, index).get(SHARDING)


def result_sharding(function: Op, index: int) -> TensorSharding | None:
    """The sharding of a result."""
    return result_attrs(function, index).get(SHARDING)


def is_donated(function: Op, index: int) -> bool:
    """Whether the memory of an argument is handed on to a result."""
    attrs = arg_attrs(function, index)
    return "tf.aliasing_output" in attrs or "jax.buffer_donor" in attrs


def set_arg_sharding(function: Op, index: int, sharding: TensorSharding | None) -> None:
    """Set the sharding of an argument; None removes it."""
    set_arg_attr(function, index, SHARDING, sharding)


def set_arg_shardings(function: Op, shardings: Mapping[int, TensorSharding | None]) -> None:
    """Set the shardings of some arguments; for many this is faster than one call for each, which copies all others."""
    _set(function, "arg_attrs", len(function.region.blocks[0].args), SHARDING, shardings)


def set_result_sharding(function: Op, index: int, sharding: TensorSharding | None) -> None:
    """Set the sharding of a result; None removes it."""
    set_result_attr(function, index, SHARDING, sharding)


def set_result_shardings(function: Op, shardings: Mapping[int, TensorSharding | None]) -> None:
    """Set the shardings of some results."""
    _set(function, "res_attrs", result_count(function), SHARDING, shardings)


def set_arg_attr(function: Op, index: int, name: str, value: Any) -> None:
    """Set an attribute of an argument; None removes it."""
    _set(function, "arg_attrs", len(function.region.blocks[0].args), name, {index: value})


def set_result_attr(function: Op, index: int, name: str, value: Any) -> None:
    """Set an attribute of a result; None removes it."""
    _set(function, "res_attrs", result_count(function), name, {index: value})


def result_count(function: Op) -> int:
    """Number of results."""
    entries = function.attrs.get("res_attrs")
    return len(entries) if entries else len(return_op(function).operands)


def _set(function: Op, kind: str, count: int, name: str, values: Mapping[int, Any]) -> None:
    old = function.attrs.get(kind) or (NO_ATTRS,) * count
    new = list(old)
    for index, value in values.items():
        new[index] = old[index].without(name) if value is None else old[index].with_value(name, value)
    if any(entry is not before for entry, before in zip(new, old)):
        function.set_attr(kind, tuple(new))


def change_border_attrs(function: Op, change: Callable[[Attributes], Attributes]) -> None:
    """Change the attributes of a function's arguments, and then of its results.

    Args:
        function: The function.
        change: Called with the attributes of each that has any; returns the new ones, or the same object to keep them.
    """
    for kind in LISTS:
        old = function.attrs.get(kind)
        if old:
            new = tuple([change(entry) for entry in old])
            if any(entry is not before for entry, before in zip(new, old)):
                function.set_attr(kind, new)


def function_of_argument(value: Value) -> Op | None:
    """The function whose argument this value is, if there is one."""
    if value.defining_op is not None:
        return None
    parent = value.block.parent_op
    return parent if parent.name == "func.func" and parent.region.blocks[0] is value.block else None
