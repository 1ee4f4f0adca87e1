"""`pyshardy.diff`: what its sides may be."""

from __future__ import annotations

import pytest

import pyshardy
from pyshardy.errors import UsageError

PROGRAM = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.tanh %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}"""
WITHOUT = PROGRAM.replace(' {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}', "")


def sizes(before: object, after: object, **keywords: object) -> dict[str, tuple[int | None, int | None]]:
    """The bytes per device before and after, of the inputs and outputs that differ."""
    found = pyshardy.diff(before, after, **keywords)
    return {change.name: (change.bytes_before, change.bytes_after) for change in found.shardings if change.bytes_before}


GROWN = {"arg0": (16, 32), "result": (16, 32)}


def test_programs_and_annotations_give_the_same_difference() -> None:
    assert sizes(PROGRAM, WITHOUT) == sizes(PROGRAM, {"arg0": None}) == GROWN
    assert sizes({"arg0": "x"}, {"arg0": None}, program=WITHOUT) == GROWN


def test_the_other_way_round() -> None:
    assert (
        sizes(WITHOUT, PROGRAM) == sizes({"arg0": None}, PROGRAM) == {name: size[::-1] for name, size in GROWN.items()}
    )


def test_results_are_compared_as_they_are() -> None:
    result = pyshardy.propagate(PROGRAM)
    assert sizes(result, result) == {}
    assert sizes(result, {"arg0": None}) == GROWN


def test_annotations_need_a_program() -> None:
    with pytest.raises(
        UsageError,
        match="got annotations alone, needed a program or a result as one of the two, or the argument program",
    ):
        pyshardy.diff({"arg0": "x"}, {"arg0": None})


def test_a_program_beside_two_programs_is_refused() -> None:
    with pytest.raises(UsageError, match="needed the argument program only together with annotations"):
        pyshardy.diff(PROGRAM, WITHOUT, program=pyshardy.load(WITHOUT))
