"""The paths of keras's variables among the inputs of a program, which a `LayoutMap` knows them by."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyshardy.core.scopes import scope_path
from pyshardy.ir.functions import CALL, main_function
from pyshardy.ir.locations import argument_name, read_location
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.readers import Readers

_VARIABLE = re.compile(r"^\w+\['([^'/]+(?:/[^'/]+)+)'\]$")
_OF_OPTIMIZER = re.compile(r"_(momentum|velocity\w*|accumulator\w*|average\w*|[mvu])$")
"""How keras ends the names of optimizer state."""
_OF_LIST = re.compile(r"^\w+\[\d+\]$")
"""The name of an input that is in a list."""
_KINDS = {
    ("stablehlo.gather", 0): "embeddings",
    ("stablehlo.dot_general", 1): "kernel",
    ("stablehlo.convolution", 1): "kernel",
}
"""What keras calls the variable that is this operand of an op of one of its layers."""
_TAKE = "_take"
"""How JAX calls the function in which it looks up rows, at the head of its name."""
_SAME = ("stablehlo.convert", "stablehlo.transpose", "stablehlo.reshape", "sdy.sharding_constraint")


def variable_path(name: str) -> str:
    """The path in the name of an input; empty if it has none, or is optimizer state.

    >>> variable_path("model['decoder/mlp_0/wi/kernel']"), variable_path("state['adamw/head_kernel_momentum']")
    ('decoder/mlp_0/wi/kernel', '')
    """
    found = _VARIABLE.search(name)
    return found[1] if found and not _OF_OPTIMIZER.search(found[1]) else ""


def paths_by_layer(module: Module) -> Iterator[tuple[int, str]]:
    """The number of each weight in a list, with the path that the layer which reads it says.

    Args:
        module: A step that keras's layers make, which gets the variables as a list.
    """
    readers = Readers(module.root, _SAME)
    for arg in main_function(module.root).region.blocks[0].args:
        if not _OF_LIST.search(argument_name(arg.location, arg.index)):
            continue
        paths = {
            f"{scope}/{kind}"
            for op, value in readers.of(arg)
            if (kind := _kind(op, value)) and (scope := scope_path(read_location(op.location, module.name).scope))
        }
        if len(paths) == 1:
            yield arg.index, paths.pop()


def _kind(op: Op, value: Value) -> str:
    """What keras calls the variable that an op reads; empty if it is not known."""
    if op.name == CALL and str(op.attrs["callee"]).startswith(_TAKE) and op.operands[0] is value:
        return "embeddings"
    return next((kind for (name, place), kind in _KINDS.items() if name == op.name and op.operands[place] is value), "")
