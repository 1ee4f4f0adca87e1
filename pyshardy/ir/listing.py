"""Lists of ops, made in one tight loop: how a pass finds the ops that concern it."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from pyshardy.ir.nodes import Op, ValueType


def ops_in(op: Op, *, post_order: bool = False, closed: Container[str] = ()) -> list[Op]:
    """The op and all ops inside it: a list, which takes half the time of a walk.

    Ops that are erased afterwards stay in it, and so do the ops inside those; ops made afterwards are not in it.

    Args:
        op: The op.
        post_order: Whether every op comes after what it holds instead of before.
        closed: Names of ops inside it of which the content is left out.
    """
    found: list[Op] = []
    _add_ops(op, found, post_order, closed, None)
    return found


def _add_ops(op: Op, found: list[Op], post_order: bool, closed: Container[str], names: Container[str] | None) -> None:
    """List an op and those inside it, or of all these those that have one of some names."""
    is_listed = names is None or op.name in names
    if is_listed and not post_order:
        found.append(op)
    for region in op.regions:
        for block in region.blocks:
            inner = block.first
            while inner is not None:
                if inner.regions and inner.name not in closed:
                    _add_ops(inner, found, post_order, closed, names)
                elif names is None or inner.name in names:
                    found.append(inner)
                inner = inner.next
    if is_listed and post_order:
        found.append(op)


def ops_named(op: Op, names: Container[str], post_order: bool = False) -> list[Op]:
    """Of the op and all ops inside it those that have one of some names, as `ops_in` lists them."""
    found: list[Op] = []
    _add_ops(op, found, post_order, (), names)
    return found


def ops_with(op: Op, attribute: str, names: Container[str] = ()) -> list[Op]:
    """Of the op and all ops inside it those that have an attribute, or one of some names, as `ops_in` lists them."""
    return [inner for inner in ops_in(op) if attribute in inner.attrs or inner.name in names]


def attribute_values(op: Op, attribute: str, without: Container[str] = ()) -> dict[Any, None]:
    """The values of an attribute of the op and of all ops inside it, each once, but of ops of some names."""
    found: dict[Any, None] = {}
    for inner in ops_in(op):
        value = inner.attrs.get(attribute)
        if value is not None and inner.name not in without:
            found[value] = None
    return found


def result_types(ops: list[Op]) -> set[ValueType]:
    """The types of the results of some ops."""
    found = set()
    for op in ops:
        for result in op.results:
            found.add(result.type)
    return found
