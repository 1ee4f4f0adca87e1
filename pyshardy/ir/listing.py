"""Lists of ops, made in one tight loop: how a pass finds the ops that concern it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyshardy.ir.nodes import Op, ValueType


def ops_in(op: Op, *, post_order: bool = False, closed: Iterable[str] = ()) -> list[Op]:
    """The op and all ops inside it: a list, which takes half the time of a walk.

    Ops that are erased afterwards stay in it, and so do the ops inside those; ops made afterwards are not in it.

    Args:
        op: The op.
        post_order: Whether every op comes after what it holds instead of before.
        closed: Names of ops inside it of which the content is left out.
    """
    found: list[Op] = []
    _add_ops(op, found, post_order, frozenset(closed))
    return found


def _add_ops(op: Op, found: list[Op], post_order: bool, closed: frozenset[str]) -> None:
    if not post_order:
        found.append(op)
    for region in op.regions:
        for block in region.blocks:
            inner = block.first
            while inner is not None:
                if inner.regions and inner.name not in closed:
                    _add_ops(inner, found, post_order, closed)
                else:
                    found.append(inner)
                inner = inner.next
    if post_order:
        found.append(op)


def ops_named(op: Op, names: Iterable[str], post_order: bool = False) -> list[Op]:
    """Of the op and all ops inside it those that have one of some names, as `ops_in` lists them."""
    found: list[Op] = []
    _add_named(op, found, post_order, frozenset(names))
    return found


def _add_named(op: Op, found: list[Op], post_order: bool, names: frozenset[str]) -> None:
    is_listed = op.name in names
    if is_listed and not post_order:
        found.append(op)
    for region in op.regions:
        for block in region.blocks:
            inner = block.first
            while inner is not None:
                if inner.regions:
                    _add_named(inner, found, post_order, names)
                elif inner.name in names:
                    found.append(inner)
                inner = inner.next
    if is_listed and post_order:
        found.append(op)


def ops_with(op: Op, attribute: str, names: Iterable[str] = ()) -> list[Op]:
    """Of the op and all ops inside it those that have an attribute, or one of some names, as `ops_in` lists them."""
    found: list[Op] = []
    _add_with(op, found, attribute, frozenset(names))
    return found


def _add_with(op: Op, found: list[Op], attribute: str, names: frozenset[str]) -> None:
    if attribute in op.shared_attrs or op.name in names:
        found.append(op)
    for region in op.regions:
        for block in region.blocks:
            inner = block.first
            while inner is not None:
                if inner.regions:
                    _add_with(inner, found, attribute, names)
                elif attribute in inner.shared_attrs or inner.name in names:
                    found.append(inner)
                inner = inner.next


def attribute_values(op: Op, attribute: str, others: Iterable[str]) -> tuple[dict[Any, None], list[Op]]:
    """The values of an attribute of the op and of all ops inside it, each once; and the ops of some other names."""
    values: dict[Any, None] = {}
    listed: list[Op] = []
    _add_values(op, values, attribute, listed, frozenset(others))
    return values, listed


def _add_values(op: Op, values: dict[Any, None], attribute: str, listed: list[Op], others: frozenset[str]) -> None:
    _add_value(op, values, attribute, listed, others)
    for region in op.regions:
        for block in region.blocks:
            inner = block.first
            while inner is not None:
                if inner.regions:
                    _add_values(inner, values, attribute, listed, others)
                else:
                    _add_value(inner, values, attribute, listed, others)
                inner = inner.next


def _add_value(op: Op, values: dict[Any, None], attribute: str, listed: list[Op], others: frozenset[str]) -> None:
    if op.name in others:
        listed.append(op)
    else:
        value = op.shared_attrs.get(attribute)
        if value is not None:
            values[value] = None


def result_types(ops: list[Op]) -> set[ValueType]:
    """The types of the results of some ops."""
    found = set()
    for op in ops:
        for result in op.results:
            found.add(result.type)
    return found


def count_attributes(ops: list[Op], others: Iterable[str], left_out: str) -> tuple[dict[Any, int], list[Op]]:
    """How often some ops have which attribute, under any name but one; and those of some other names."""
    shared: dict[int, tuple[dict[str, Any], list[Op]]] = {}  # by identity, as many ops have the same
    listed: list[Op] = []
    names = frozenset(others)
    for op in ops:
        if op.name in names:
            listed.append(op)
        else:
            attrs = op.shared_attrs
            found = shared.get(id(attrs))
            if found is None:
                found = shared[id(attrs)] = attrs, []
            found[1].append(op)
    counts: dict[Any, int] = {}
    for attrs, ops_with_them in shared.values():
        for name, value in attrs.items():
            if name != left_out:
                counts[value] = counts.get(value, 0) + len(ops_with_them)
    return counts, listed
