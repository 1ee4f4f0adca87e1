"""The paths of keras's variables among the inputs of a program, which a `LayoutMap` knows them by."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from pyshardy.checkup.program.ties import ties_in
from pyshardy.core.intern import register_cache
from pyshardy.core.scopes import scope_path
from pyshardy.frontend.interface import InterfaceTensor, input_tensors, output_tensors
from pyshardy.ir.functions import CALL, main_function, return_op
from pyshardy.ir.locations import argument_name, read_location
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.readers import Readers
from pyshardy.rules.properties import ELEMENTWISE

_VARIABLE = re.compile(r"^\w+\['([^'/]+(?:/[^'/]+)+)'\]$")
_OF_OPTIMIZER = re.compile(r"_(momentum|velocity\w*|accumulator\w*|average\w*|[mvu])$")
"""How keras ends the names of optimizer state."""
_OF_LIST = re.compile(r"\[\d+\]$")
"""The name of an input that is in a list."""
_KINDS = {
    ("stablehlo.gather", 0): "embeddings",
    ("stablehlo.dot_general", 1): "kernel",
    ("stablehlo.convolution", 1): "kernel",
}
"""What keras calls the variable that is this operand of an op of one of its layers."""
_TAKE = "_take"
"""How JAX calls the function in which it looks up rows, at the head of its name."""
_HANDED_ON = frozenset((CALL, "sdy.sharding_constraint", "stablehlo.optimization_barrier"))
_MOST_VALUES = 200
"""The values that are looked at for one weight."""
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


@lru_cache(maxsize=1)
def paths_in_lists(module: Module) -> Mapping[int, str]:
    """The number of each weight in a list, and of its optimizer state, with the path that its layer says.

    The state of a weight has its shape, and the new weight is computed from it element by element.

    Args:
        module: A step that keras's layers make, which gets the variables as lists.
    """
    paths = dict(paths_by_layer(module))
    if not paths:
        return {}
    inputs, outputs = input_tensors(module.root), output_tensors(module.root)
    main, ties = main_function(module.root), ties_in(module, inputs, outputs)
    args, returned = main.region.blocks[0].args, return_op(main).operands
    listed = {id(args[one.index]): one.index for one in inputs if _OF_LIST.search(one.name)}
    found: dict[int, set[str]] = {}
    for place, result in ties.items():
        path = paths.get(inputs[place].index)
        for value in _made_of(returned[outputs[result].index]) if path else ():
            index = listed.get(id(value))
            if path and index is not None and index not in paths:
                found.setdefault(index, set()).add(path)
    return paths | {index: of.pop() for index, of in found.items() if len(of) == 1}


register_cache(paths_in_lists.cache_clear)


def told_name(module: Module, one: InterfaceTensor) -> str:
    """The name of an input, and for one in a list the path by which keras knows it or its weight.

    Args:
        module: The program.
        one: The input.
    """
    path = paths_in_lists(module).get(one.index)
    return one.name if path is None else f"{one.name} ({path})"


def _made_of(value: Value) -> Iterator[Value]:
    """The values of the shape of a value that it is computed from, element by element."""
    todo, seen = [value], {id(value)}
    while todo and len(seen) < _MOST_VALUES:
        one = todo.pop()
        yield one
        op = one.defining_op
        if op is not None and (op.name in ELEMENTWISE or op.name in _HANDED_ON):
            more = [other for other in op.operands if other.type.shape == value.type.shape and id(other) not in seen]
            seen |= {id(other) for other in more}
            todo += more


def _kind(op: Op, value: Value) -> str:
    """What keras calls the variable that an op reads; empty if it is not known."""
    if op.name == CALL and str(op.attrs["callee"]).startswith(_TAKE) and op.operands[0] is value:
        return "embeddings"
    return next((kind for (name, place), kind in _KINDS.items() if name == op.name and op.operands[place] is value), "")
