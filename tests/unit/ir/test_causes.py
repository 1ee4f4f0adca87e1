"""What made an op necessary, in its location."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jaxlib.mlir import ir

from pyshardy.ir.causes import OTHER_REDUCTION, REDUCTIONS, cause_of, scope_of, with_cause
from pyshardy.ir.context import make_context
from pyshardy.ir.diagnostics import source_position

CAUSE = "reshard of operand 1 of stablehlo.dot_general"
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
    "cause",
    [CAUSE, "borders of operand 0 of stablehlo.convolution", "reshard of result 2 of the body of stablehlo.while"]
    + [f"{word} of result of stablehlo.reduce" for word in (*REDUCTIONS.values(), OTHER_REDUCTION)],
)
def test_a_cause_is_found_again(cause: str, place: str) -> None:
    with make_context():
        before = parsed(place)
        after = with_cause(before, cause)
        assert (cause_of(before), cause_of(after)) == (None, cause)
        assert scope_of(after) == scope_of(before) == ("jit(f)/dot_general" if "jit" in place else None)
        assert source_position(after) == ("f.py", 3, 4)


def test_the_last_cause_counts() -> None:
    with make_context():
        location = with_cause(with_cause(parsed(PLACES[1]), CAUSE), "sum of result of stablehlo.dot")
        assert cause_of(location) == "sum of result of stablehlo.dot"


def test_a_place_without_a_name() -> None:
    with make_context():
        location = ir.Location.unknown()
        assert (cause_of(location), scope_of(location)) == (None, None)
        named = with_cause(location, CAUSE)
        assert (cause_of(named), scope_of(named), source_position(named)) == (CAUSE, None, None)


@pytest.mark.parametrize(
    "name",
    ["jit(f)/reshard", "reshard of operand", "sum of squares of x", "jit(f)/reshard of operand 1", "x/sum of result"],
)
def test_other_names_are_no_causes(name: str) -> None:
    with make_context():
        location = ir.Location.name(name)
        assert cause_of(location) is None
        assert scope_of(location) == name


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1))
def test_any_scope_is_found_again(scope: str) -> None:
    with make_context():
        location = ir.Location.name(scope, ir.Location.file("f.py", 3, 4))
        assert cause_of(with_cause(location, CAUSE)) == CAUSE
