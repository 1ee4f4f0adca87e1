"""Axes that may change places, and those that may not."""

from __future__ import annotations

import pytest

from pyshardy.searching.autopartition.space import Space
from pyshardy.searching.autopartition.symmetry import Symmetry

from .problems import problem_from

TEXT = """
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=4]>
func.func @main(%x: tensor<16x16xf32>{given}) -> tensor<16x16xf32> {{
  %0 = stablehlo.tanh %x{inner} : tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}}"""


def symmetry(given: str = "", inner: str = "", chip: str = "v5e") -> Symmetry:
    return Symmetry(Space(problem_from(TEXT.format(given=given, inner=inner), chip)))


def test_axes_of_one_size_are_alike() -> None:
    found = symmetry()
    one, other = ((("a", "c"), ("b",)),), ((("b", "c"), ("a",)),)
    assert found.first(one) == one
    assert found.first(other) == one
    assert found.first(((("c", "a"), ("b",)),)) != one  # the order of axes on one dimension counts
    assert found.first(((("a",), ("c",)),)) != found.first(((("c",), ("a",)),))


@pytest.mark.parametrize(
    "text",
    [
        {"chip": "h100"},  # "a" connects nodes of eight
        {"given": ' {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}'},
        {"inner": ' {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}'},
    ],
)
def test_axes_of_other_networks_or_that_the_program_names_are_not(text: dict[str, str]) -> None:
    found = symmetry(**text)
    one, other = ((("a",), ()),), ((("b",), ()),)
    assert (found.first(one), found.first(other)) == (one, other)
