"""`pyshardy.search`: what it accepts, and that its plan is one of the program."""

from __future__ import annotations

import pytest

import pyshardy
from pyshardy.errors import UsageError

PROGRAM = """
sdy.mesh @mesh = <["x"=8]>
func.func @main(%a: tensor<8192x512xbf16>, %b: tensor<512x512xbf16>) -> tensor<8192x512xbf16> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<8192x512xbf16>, tensor<512x512xbf16>) -> tensor<8192x512xbf16>
  return %0 : tensor<8192x512xbf16>
}"""


def test_the_batch_is_split_and_the_plan_costs_less_than_nothing_sharded() -> None:
    plan = pyshardy.search(PROGRAM, hardware="h100")
    assert plan.fits and set(plan.specs) == {"arg0", "arg1"}
    split = pyshardy.cost(pyshardy.annotate(pyshardy.load(PROGRAM), plan.specs), "h100").estimate
    assert split.step_seconds < pyshardy.cost(PROGRAM, "h100").estimate.step_seconds
    assert split.flops_per_device * 8 == pyshardy.cost(PROGRAM, "h100").estimate.flops_per_device


def test_the_same_seed_gives_the_same_plan() -> None:
    one, other = (pyshardy.search(PROGRAM, hardware="h100", seed=3).specs for _ in range(2))
    assert one == other


@pytest.mark.parametrize(
    ("keywords", "needed"),
    [
        ({"budget_s": 0}, "seconds, more than 0"),
        ({"budget_s": "long"}, "seconds, more than 0"),
        ({"memory": -1}, "bytes, more than 0"),
        ({"devices": 8, "mesh": {"x": 8}}, "needed one of them"),
    ],
)
def test_what_makes_no_sense_is_refused(keywords: dict[str, object], needed: str) -> None:
    with pytest.raises(UsageError, match=needed):
        pyshardy.search(PROGRAM, **keywords)


def test_arguments_beside_a_program_are_refused() -> None:
    with pytest.raises(UsageError, match="arguments and shardings only for a function"):
        pyshardy.search(PROGRAM, "h100")
