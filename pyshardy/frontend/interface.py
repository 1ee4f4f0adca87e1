"""The inputs and outputs of a module, under the names its user knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.functions import SHARDING, arg_attrs, main_function, result_attrs, return_op
from pyshardy.ir.nodes import Op
from pyshardy.ir.strings import location_name, shown, string_value


@dataclass(frozen=True, slots=True)
class Port:
    """A tensor that goes into a module or comes out of it.

    Attributes:
        name: As in the user's program where the module tells, such as `params['layers'][0]['w1']`.
        index: Its position among the arguments or results of the main function.
        shape: Sizes of its dimensions; -1 for a dynamic one.
        element: MLIR's text of the element type.
        sharding: Its sharding.
    """

    name: str
    index: int
    shape: tuple[int, ...]
    element: str
    sharding: TensorSharding | None


def input_ports(root: Op) -> list[Port]:
    """The tensors that the main function takes; tokens are left out."""
    main = main_function(root)
    return [
        Port(_arg_name(arg.location, arg.index), arg.index, arg.type.shape, arg.type.element,
             arg_attrs(main, arg.index).get(SHARDING))
        for arg in main.region.blocks[0].args
        if arg.type.shape is not None
    ]  # fmt: skip


def output_ports(root: Op) -> list[Port]:
    """The tensors that the main function returns; tokens are left out."""
    main = main_function(root)
    returned = return_op(main).operands
    ports = []
    for index, value in enumerate(returned):
        if value.type.shape is not None:
            attrs = result_attrs(main, index)
            name = _result_name(attrs.get("jax.result_info"), index, len(returned))
            ports.append(Port(name, index, value.type.shape, value.type.element, attrs.get(SHARDING)))
    return ports


def _arg_name(location: Any, index: int) -> str:
    """JAX names the location of an argument after the argument."""
    name = location_name(location)
    return f"arg{index}" if name is None else shown(name)


def _result_name(info: Any, index: int, count: int) -> str:
    name = shown(string_value(info)) if isinstance(info, ir.StringAttr) else ""
    if name:
        return name if name.startswith("result") else f"result{name}"
    return "result" if count == 1 else f"result[{index}]"
