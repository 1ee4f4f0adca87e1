"""The distinct shardings of a function, found in one cheap pass over its ops."""

from __future__ import annotations

from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.functions import SHARDING
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import attribute_values
from pyshardy.ir.shardings import HOLD_OTHERWISE, sharding_attributes


def distinct_shardings(function: Op) -> list[TensorSharding]:
    """The distinct shardings of the arguments and results of a function and of all ops inside."""
    values, others = attribute_values(function, SHARDING, HOLD_OTHERWISE)
    for op in others:
        for name in sharding_attributes(op):
            values[op.attrs.get(name)] = None
    for kind in ("arg_attrs", "res_attrs"):
        for entry in function.attrs.get(kind) or ():
            values[entry.get(SHARDING)] = None
    found: dict[TensorSharding, None] = {}
    for value in values:
        if isinstance(value, TensorSharding):
            found[value] = None
        elif isinstance(value, tuple):
            found.update(dict.fromkeys(value))
    return list(found)
