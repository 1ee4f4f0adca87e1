"""Lists of ops, made in one tight loop, in which passes find the ops they work on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyshardy.ir.blocks import Region
from pyshardy.ir.op import Op

MANY = 256
"""From so many ops in a function on, an index of them by name pays."""


def ops_in(op: Op, *, post_order: bool = False, closed: Iterable[str] = ()) -> list[Op]:
    """The op and all ops inside it, as a list, which takes half the time of a walk.

    Ops that are erased later stay in the list, with the ops inside them; ops made later are not in it.

    Args:
        op: The op.
        post_order: Whether every op comes after the ops inside it instead of before them.
        closed: Names of ops whose content is left out.
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
    """List an op and the ops inside it; if names are given, only ops with one of them or with the attribute."""
    is_listed = names is None or _is_wanted(op, names, attribute)
    if is_listed and not post_order:
        found.append(op)
    known = names if attribute is None and op.name == "func.func" else None
    for region in op.regions:
        if known is None or not _add_known(region, found, post_order, known):
            _add_inside(region, found, post_order, closed, names, attribute)
    if is_listed and post_order:
        found.append(op)


def _add_inside(
    region: Region,
    found: list[Op],
    post_order: bool,
    closed: frozenset[str],
    names: frozenset[str] | None,
    attribute: str | None,
) -> None:
    """List the ops of a region and those inside them."""
    for block in region.blocks:
        inner = block.first
        while inner is not None:
            if inner.regions and inner.name not in closed:
                _add_ops(inner, found, post_order, closed, names, attribute)
            elif names is None or _is_wanted(inner, names, attribute):
                found.append(inner)
            inner = inner.next


def _add_known(region: Region, found: list[Op], post_order: bool, names: frozenset[str]) -> bool:
    """List the ops of some names in the body of a function from the index, if it has them; return whether it has.

    Most passes look for a few ops among many. An index entry is valid until an op of that name is added or removed.
    """
    known = region.op_index
    if known is None:
        known = region.op_index = _by_name(region)
    if not known:
        return False
    of_one: list[Op] | None = None
    for name in names:
        ops = known.get(name, _NO_OPS)
        if ops is None:
            _add_again(region, found, post_order, names)
            return True
        if ops:
            if of_one is not None:
                return False  # their common order is unknown
            of_one = ops
    if of_one is not None:
        if post_order and _any_holds(of_one):
            return False
        found += of_one
    return True


def _add_again(region: Region, found: list[Op], post_order: bool, names: frozenset[str]) -> None:
    """List the ops of some names in a region, and index the names whose ops were added or removed."""
    known = region.op_index
    assert known is not None
    count = len(found)
    _add_inside(region, found, post_order, _NONE, names, None)
    made: dict[str, list[Op]] = {name: [] for name in names if known.get(name, _NO_OPS) is None}
    for op in found[count:]:
        ops = made.get(op.name)
        if ops is not None:
            ops.append(op)
    for name, ops in made.items():
        if not (post_order and _any_holds(ops)):
            known[name] = ops


def _by_name(region: Region) -> dict[str, list[Op] | None]:
    """The ops of a region by name, each before those inside it; empty if it has few ops."""
    ops: list[Op] = []
    _add_inside(region, ops, False, _NONE, None, None)
    found: dict[str, list[Op] | None] = {}
    for op in ops if len(ops) >= MANY else ():
        known = found.get(op.name)
        if known is None:
            found[op.name] = [op]
        else:
            known.append(op)
    return found


def _any_holds(ops: list[Op]) -> bool:
    """Whether any of the ops has regions: only then the order of outer and inner ops matters."""
    for op in ops:  # noqa: SIM110 (the compiled core takes a loop)
        if op.regions:
            return True
    return False


def _is_wanted(op: Op, names: frozenset[str], attribute: str | None) -> bool:
    return (attribute is not None and attribute in op.attrs) or op.name in names


_NONE: frozenset[str] = frozenset()
_NO_OPS: list[Op] = []


def ops_named(op: Op, names: Iterable[str], post_order: bool = False) -> list[Op]:
    """The op itself and all ops inside it that have one of some names, as `ops_in` lists them."""
    found: list[Op] = []
    _add_ops(op, found, post_order, _NONE, frozenset(names), None)
    return found


def ops_with(op: Op, attribute: str, names: Iterable[str] = ()) -> list[Op]:
    """The op itself and all ops inside it that have an attribute, or one of some names, as `ops_in` lists them."""
    found: list[Op] = []
    _add_ops(op, found, False, _NONE, frozenset(names), attribute)
    return found


def attribute_values(op: Op, attribute: str, others: Iterable[str]) -> tuple[dict[Any, None], list[Op]]:
    """The distinct values of an attribute of the op and of all ops inside it; and the ops of some other names."""
    values: dict[Any, None] = {}
    listed: list[Op] = []
    names = frozenset(others)
    for inner in ops_with(op, attribute, names):
        if inner.name in names:
            listed.append(inner)
        else:
            values[inner.attrs[attribute]] = None
    return values, listed


def count_attributes(ops: list[Op], others: Iterable[str], left_out: str) -> tuple[dict[Any, int], list[Op]]:
    """The number of ops for each attribute value, without one attribute; and the ops with other names, which do not
    count."""
    shared: dict[int, list[Op]] = {}  # by identity of the attributes, which many ops share
    listed: list[Op] = []
    names = frozenset(others)
    for op in ops:
        if op.name in names:
            listed.append(op)
        else:
            shared.setdefault(id(op.attrs), []).append(op)
    counts: dict[Any, int] = {}
    for alike in shared.values():
        for name, value in alike[0].attrs.items():
            if name != left_out:
                counts[value] = counts.get(value, 0) + len(alike)
    return counts, listed
