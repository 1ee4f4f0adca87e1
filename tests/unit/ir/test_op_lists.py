"""Listing ops by name gives those that a walk finds, whatever has changed since the last time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk, walk_post_order
from pyshardy.ir.op_lists import MANY, ops_named, ops_with

NAMES = ("t.a", "t.b", "t.c", "t.d")


def function(count: int = MANY) -> Op:
    """A function of so many ops, among them a few of other names, and a nest of ops with regions."""
    found = Op("func.func", attrs={"sym_name": "f"}, region_count=1)
    block = found.region.add_block()
    for _ in range(count):
        block.append(Op("t.filler"))
    for name in NAMES:
        block.append(nest(name))
    return found


def nest(name: str) -> Op:
    """An op that holds one of the same name, one of the next name, and a filler."""
    outer = Op(name, region_count=1)
    inner = outer.region.add_block()
    for inside in (name, NAMES[NAMES.index(name) - 1], "t.filler"):
        inner.append(Op(inside))
    return outer


def module(*functions: Op) -> Op:
    root = Op("builtin.module", region_count=1)
    block = root.region.add_block()
    for one in functions:
        block.append(one)
    return root


def check(top: Op, names: frozenset[str]) -> None:
    assert ops_named(top, names) == [op for op in walk(top) if op.name in names]
    assert ops_named(top, names, post_order=True) == [op for op in walk_post_order(top) if op.name in names]


def change(root: Op, kind: str, number: int, name: str) -> None:
    ops = [op for op in walk(root) if op.name in NAMES]
    op = ops[number % len(ops)] if ops else root.region.block.last
    assert op is not None and op.block is not None
    if kind == "rename":
        op.rename(name)
    elif kind == "erase":
        op.erase()
    elif kind == "insert":
        Op(name).insert_before(op)
    elif kind == "insert a nest":
        nest(name).insert_after(op)
    elif kind == "clone":
        op.clone().insert_after(op)
    elif kind == "move":
        last = op.block.terminator
        if last is not op:
            op.detach().insert_before(last)
    elif op.regions:  # take the body of another
        other = nest(name)
        other.insert_after(op)
        op.region.take_body(other.region)


CHANGES = ("rename", "erase", "insert", "insert a nest", "clone", "move", "take body")
SETS = st.sets(st.sampled_from((*NAMES, "t.none")), max_size=3).map(frozenset)


@given(
    st.lists(
        st.tuples(st.sampled_from(CHANGES), st.integers(0, 99), st.sampled_from(NAMES), SETS, st.booleans()),
        max_size=12,
    )
)
def test_lists_are_those_of_a_walk(steps: list[tuple[str, int, str, frozenset[str], bool]]) -> None:
    body = function()
    root = module(body, function(3))
    for kind, number, name, names, is_inside in steps:
        check(body if is_inside else root, names)
        change(root, kind, number, name)
        if body.block is None:  # it was cloned or erased itself
            return
    for name in NAMES:
        check(root, frozenset((name,)))


@pytest.mark.parametrize("kind", CHANGES)
def test_what_was_listed_before_a_change(kind: str) -> None:
    """Every name is known before, and every change is noticed."""
    for number in range(12):
        for name in NAMES:
            root = module(function())
            for known in NAMES:
                check(root, frozenset((known,)))
            change(root, kind, number, name)
            for known in NAMES:
                check(root, frozenset((known,)))


def test_what_is_known_is_not_looked_for() -> None:
    body = function()
    known = Op("t.other").insert_before(body.region.block.terminator)
    assert body.region.op_index is None
    assert ops_named(body, ("t.other", "t.none")) == [known]
    index = body.region.op_index
    assert index is not None and index["t.other"] == [known] and "t.none" not in index
    new = Op("t.other").insert_before(known)
    assert index["t.other"] is None
    assert ops_named(body, ("t.other",)) == [new, known] == index["t.other"]
    index["t.other"] = []  # nothing but this is looked at
    assert ops_named(body, ("t.other",)) == []


def test_nothing_is_kept_of_small_functions_and_other_ops() -> None:
    body, other = function(MANY - 20), Op("t.holder", region_count=1)
    for op in function().region.block:
        other.regions[0].blocks or other.region.add_block()
        other.region.block.append(op.detach())
    for top in (body, other):
        check(top, frozenset(("t.a",)))
        assert not top.region.op_index


def test_the_lists_are_the_callers() -> None:
    body = function()
    ops_named(body, ("t.none",))
    found = ops_named(body, ("t.filler",))
    found.clear()
    assert len(ops_named(body, ("t.filler",))) == MANY + len(NAMES)


def test_what_was_not_read_is_not_there_until_it_is_made() -> None:
    root = Module.parse("func.func @main() { return }").copy_root()
    assert ops_named(root, ("t.a", "t.b")) == []
    assert [op.name for op in ops_named(root, ("t.a", "func.return"))] == ["func.return"]
    (returned,) = ops_named(root, ("func.return",))
    made = Op("t.a").insert_before(returned)
    assert ops_named(root, ("t.a", "t.b")) == [made]
    made.rename("t.b")
    assert ops_named(root, ("t.b",)) == [made] and ops_named(root, ("t.a",)) == []


def test_attributes_are_looked_for_always() -> None:
    body = function()
    ops_named(body, ("t.filler",))
    first = body.region.block.first
    assert first is not None and ops_with(body, "t.x") == []
    first.set_attr("t.x", 1)
    assert ops_with(body, "t.x") == [first]


def test_a_stale_list_is_noticed() -> None:
    """`check` fails where what is known is not what is there."""
    body = function()
    check(body, frozenset(("t.none",)))
    index = body.region.op_index
    assert index is not None
    index["t.none"] = [body]
    with pytest.raises(AssertionError):
        check(body, frozenset(("t.none",)))
