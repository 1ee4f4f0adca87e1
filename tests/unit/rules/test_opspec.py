from __future__ import annotations

import copy
import pickle

import pytest

from pyshardy.errors import InvalidRuleError
from pyshardy.rules.dimension_numbers import DotNumbers
from pyshardy.rules.opspec import OpSpec

from .probe import spec


def test_equal_descriptions_are_one_object() -> None:
    one = OpSpec("stablehlo.all_to_all", [[9, 6]], [(3, 18)], {"split_dimension": 0, "concat_dimension": 1})
    other = OpSpec("stablehlo.all_to_all", ((9, 6),), [[3, 18]], [("concat_dimension", 1), ("split_dimension", 0)])
    assert one is other
    assert one.attributes == (("concat_dimension", 1), ("split_dimension", 0))


def test_copies_are_the_same_object() -> None:
    one = spec("dot_general", "4, 4 -> ()", dot_dimension_numbers=DotNumbers(lhs_contracting=(0,)))
    assert copy.deepcopy(one) is one
    assert pickle.loads(pickle.dumps(one)) is one


def test_attributes() -> None:
    found = spec("sort", "4 -> 4", dimension=0)
    assert found.attr("dimension") == 0
    assert found.attr("is_stable", False) is False
    with pytest.raises(InvalidRuleError, match=r"reading attribute 'is_stable' of stablehlo.sort\(4\) -> \(4\)"):
        found.attr("is_stable")


def test_attributes_may_be_false() -> None:
    assert spec("triangular_solve", "4x4, 4 -> 4", left_side=False).attr("left_side") is False


def test_values_without_dimensions() -> None:
    found = spec("@MoveToHost", "token, () -> 4x?")
    assert found.operand_shapes == (None, ())
    assert found.operand(0) == found.operand(1) == ()
    assert not found.is_static
    assert str(found) == "stablehlo.custom_call @MoveToHost(no shape, scalar) -> (4x?)"


def test_only_custom_calls_have_a_target() -> None:
    assert spec("@Qr", "4x4 -> 4x4, 4").target == "Qr"
    assert OpSpec("stablehlo.custom_call", [], []).target == ""
    assert spec("abs", "4 -> 4").target is None
