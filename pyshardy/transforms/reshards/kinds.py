"""Kinds of ops: repeated layers repeat their ops, and a fact about one op of a kind holds for all.

A pass that decides by the kind of an op alone decides once per kind in a module.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.blocks import Value
from pyshardy.ir.op import Op
from pyshardy.ir.opspec import CONTEXT_FACTS
from pyshardy.ir.shardings import get_shardings
from pyshardy.ir.value_type import ValueType

AS_THEY_ARE: dict[Value, ValueType] = {}
"""No replacement of the types of values."""


def kind_of(
    op: Op,
    types: dict[Value, ValueType] = AS_THEY_ARE,
    shardings_of: Callable[[Iterable[Value]], Iterable[TensorSharding | None]] = get_shardings,
) -> Hashable:
    """A key that is equal for ops with the same name, attributes, types and shardings; regions do not count.

    None if the context of an op matters.

    Args:
        op: An op whose results have their shardings in its attributes: no data-flow op, no function.
        types: Types of values that replace the current ones.
        shardings_of: Gives the shardings of operands.
    """
    name, operands = op.name, op.operands
    if name in CONTEXT_FACTS:
        return None
    attrs, results = op.attrs, op.results
    kind: list[Any] = [name, len(results)]
    kind.extend(attrs)
    kind.extend(attrs.values())
    for value in operands:
        kind.append(types.get(value, value.type) if types else value.type)
    kind.extend(shardings_of(operands))
    for value in results:
        kind.append(value.type)
    return tuple(kind)
