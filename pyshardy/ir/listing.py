"""Lists of ops, made in one tight loop: how a pass finds the ops that concern it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyshardy.ir.nodes import Op


def ops_in(op: Op, *, post_order: bool = False, closed: Iterable[str] = ()) -> list[Op]:
    """The op and all ops inside it: a list, which takes half the time of a walk.

    Ops that are erased afterwards stay in it, and so do the ops inside those; ops made afterwards are not in it.

    Args:
        op: The op.
        post_order: Whether every op comes after what it holds instead of before.
        closed: Names of ops inside it of which the content is left out.
    """
    found: list[Op] = []
    _add_ops(op, found, post_order, frozenset(closed), None, None)
    return found


def _add_ops(
    op: Op,
    found: list[Op],
    post_order: bool,
    closed: frozenset[str],
    names: frozenset[str] | None,
    attribute: str | None,
) -> None:
    """List an op and those inside it; where names are given, those alone that have one of them, or the attribute."""
    is_listed = names is None or _is_wanted(op, names, attribute)
    if is_listed and not post_order:
        found.append(op)
    for region in op.regions:
        for block in region.blocks:
            inner = block.first
            while inner is not None:
                if inner.regions and inner.name not in closed:
                    _add_ops(inner, found, post_order, closed, names, attribute)
                elif names is None or _is_wanted(inner, names, attribute):
                    found.append(inner)
                inner = inner.next
    if is_listed and post_order:
        found.append(op)


def _is_wanted(op: Op, names: frozenset[str], attribute: str | None) -> bool:
    return (attribute is not None and attribute in op.shared_attrs) or op.name in names


_NONE: frozenset[str] = frozenset()


def ops_named(op: Op, names: Iterable[str], post_order: bool = False) -> list[Op]:
    """Of the op and all ops inside it those that have one of some names, as `ops_in` lists them."""
    found: list[Op] = []
    _add_ops(op, found, post_order, _NONE, frozenset(names), None)
    return found


def ops_with(op: Op, attribute: str, names: Iterable[str] = ()) -> list[Op]:
    """Of the op and all ops inside it those that have an attribute, or one of some names, as `ops_in` lists them."""
    found: list[Op] = []
    _add_ops(op, found, False, _NONE, frozenset(names), attribute)
    return found


def attribute_values(op: Op, attribute: str, others: Iterable[str]) -> tuple[dict[Any, None], list[Op]]:
    """The values of an attribute of the op and of all ops inside it, each once; and the ops of some other names."""
    values: dict[Any, None] = {}
    listed: list[Op] = []
    names = frozenset(others)
    for inner in ops_with(op, attribute, names):
        if inner.name in names:
            listed.append(inner)
        else:
            values[inner.shared_attrs[attribute]] = None
    return values, listed


def count_attributes(ops: list[Op], others: Iterable[str], left_out: str) -> tuple[dict[Any, int], list[Op]]:
    """How often some ops have which attribute, under any name but one; and those of some other names."""
    shared: dict[int, list[Op]] = {}  # by the identity of the attributes, as many ops have the same
    listed: list[Op] = []
    names = frozenset(others)
    for op in ops:
        if op.name in names:
            listed.append(op)
        else:
            shared.setdefault(id(op.shared_attrs), []).append(op)
    counts: dict[Any, int] = {}
    for alike in shared.values():
        for name, value in alike[0].shared_attrs.items():
            if name != left_out:
                counts[value] = counts.get(value, 0) + len(alike)
    return counts, listed
