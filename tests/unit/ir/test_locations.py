"""What locations say: the name of an op, the calls that led to it, what a collective is for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jaxlib.mlir import ir

from pyshardy.core.needs import BORDERS, OTHER_REDUCTION, REDUCTIONS, RESHARD, Need
from pyshardy.ir.context import make_context
from pyshardy.ir.locations import read_location, scope_of, source_position, with_need
from pyshardy.ir.nodes import Op
from pyshardy.ir.source import place_for

NEED = Need(RESHARD, "stablehlo.dot_general", 1)
SUM = Need("sum", "stablehlo.dot", None, is_result=True)
PLACES = [
    'loc("f.py":3:4)',
    'loc("jit(f)/dot_general"("f.py":3:4))',
    'loc("jit(f)/dot_general"(callsite("g"("f.py":3:4) at "f.py":9:1)))',
]


def parsed(place: str) -> ir.Location:
    """A location from its text."""
    found: ir.Location = ir.Module.parse(f"module {{}} {place}").operation.location
    return found


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "need",
    [NEED, Need(BORDERS, "stablehlo.convolution", 0), Need(RESHARD, "stablehlo.while", 2, True, True)]
    + [Need(word, "stablehlo.reduce", None, True) for word in (*REDUCTIONS.values(), OTHER_REDUCTION)],
    ids=str,
)
def test_a_need_is_found_again(need: Need, place: str) -> None:
    with make_context():
        before = parsed(place)
        after = with_need(before, need)
        assert (read_location(before).need, read_location(after).need) == (None, need)
        assert scope_of(after) == scope_of(before) == ("jit(f)/dot_general" if "jit" in place else None)
        assert source_position(after) == ("f.py", 3, 4)


def test_the_last_need_counts() -> None:
    with make_context():
        location = with_need(with_need(parsed(PLACES[1]), NEED), SUM)
        assert read_location(location).need == SUM


def test_a_place_without_a_name() -> None:
    with make_context():
        location = ir.Location.unknown()
        assert read_location(location) == (None, None, ())
        assert read_location(with_need(location, NEED)) == (None, NEED, ())


def test_ops_keep_a_need_as_data() -> None:
    with make_context():
        first = Op("sdy.reshard", location=place_for(parsed(PLACES[1]), NEED))
        second = Op("sdy.all_gather", location=first.place)
        assert scope_of(second.location) == "jit(f)/dot_general"
        assert second.need is first.need is NEED
        assert Op("sdy.all_gather", location=first.location).need == NEED
        assert Op("stablehlo.dot_general", location=parsed(PLACES[1])).need is None


@pytest.mark.parametrize(
    "name",
    ["jit(f)/reshard", "reshard of operand", "sum of squares of x", "jit(f)/reshard of operand 1", "x/sum of result"],
)
def test_other_names_are_no_needs(name: str) -> None:
    with make_context():
        location = ir.Location.name(name)
        assert read_location(location).need is None
        assert scope_of(location) == name


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1))
def test_any_scope_is_found_again(scope: str) -> None:
    with make_context():
        location = ir.Location.name(scope, ir.Location.file("f.py", 3, 4))
        assert read_location(with_need(location, NEED)).need == NEED


def test_functions_that_are_calls_have_names_and_scopes_have_none() -> None:
    text = 'loc("jit(f)/add"(callsite("mlp"("net.py":3:8 to :9) at callsite("f"("-":31:4) at "main.py":9:1))))'
    found = read_location(text, "model.mlir").calls
    assert [(call.function, call.place) for call in found] == [
        ("mlp", ("net.py", 3, 8)),
        ("f", ("model.mlir", 31, 4)),
        ("", ("main.py", 9, 1)),
    ]
    assert read_location('loc("jit(f)/add"("net.py":3:8))').calls[0].function == ""
