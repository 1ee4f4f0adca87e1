"""Kinds of ops: repeated layers repeat their ops, and what holds for one op of a kind holds for all.

A pass that decides by the kind of an op alone does so once for every kind that a module has.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.nodes import Op, Value, ValueType
from pyshardy.ir.opspec import LOOKS_AROUND
from pyshardy.ir.shardings import get_shardings

AS_THEY_ARE: dict[Value, ValueType] = {}
"""No types that count instead of those that values have."""


def kind_of(
    op: Op,
    types: dict[Value, ValueType] = AS_THEY_ARE,
    shardings_of: Callable[[Iterable[Value]], Iterable[TensorSharding | None]] = get_shardings,
) -> Hashable:
    """What ops share of the same name, attributes, types and shardings; their regions do not count.

    None for an op of a kind that can only be told by what is around it.

    Args:
        op: An op whose results have their shardings in its attributes: no data-flow op, no function.
        types: The types of values that count instead of those they have.
        shardings_of: Gives the shardings of operands.
    """
    name, operands = op.name, op.operands
    if name in LOOKS_AROUND:
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
