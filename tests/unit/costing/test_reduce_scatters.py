"""All-reduces of which every device keeps its slice."""

from __future__ import annotations

import pytest

from pyshardy.costing.program import CostProgram, walk_ops
from pyshardy.costing.reduce_scatters import with_reduce_scatters

from .build import described

TYPE, PART = "tensor<64x64xf32>", "tensor<32x64xf32>"
SUM = f"""%a = "stablehlo.all_reduce"(%x) <{{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}> ({{
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %s : tensor<f32>
}}) : ({TYPE}) -> {TYPE}
%zero = stablehlo.constant dense<0> : tensor<i32>
"""
SLICE = f"""%b = stablehlo.dynamic_slice %a, %i, %zero, sizes = [32, 64]
  : ({TYPE}, tensor<i32>, tensor<i32>) -> {PART}
"""


def program(body: str, results: str = "%b", types: str = PART) -> CostProgram:
    return described(
        f"func.func @main(%x: {TYPE}, %i: tensor<i32>) -> ({types}) {{ {body} return {results} : {types} }}"
    )


def test_the_slice_of_a_sum_is_scattered() -> None:
    found = with_reduce_scatters(program(SUM + SLICE))
    (scatter,) = (op for op in walk_ops(found.body) if op.traffic is not None)
    assert scatter.kind.name == "stablehlo.reduce_scatter" and scatter.results == found.body.results
    assert scatter.operands == found.body.arguments[:1]
    assert scatter.traffic is not None and scatter.traffic.kind == "reduce_scatter"
    whole = 64 * 64 * 4
    assert (scatter.traffic.bytes_before, scatter.traffic.bytes_after) == (whole, whole // 2)
    assert scatter.traffic.sent_bytes == whole // 2  # half of what the all-reduce sends
    assert not any(op.kind.name == "stablehlo.dynamic_slice" for op in walk_ops(found.body))


@pytest.mark.parametrize(
    "given",
    [
        program(SUM + SLICE, "%a, %b", f"{TYPE}, {PART}"),
        program(SUM + SLICE.replace("%i", "%zero")),
        program(SUM + SLICE.replace("32, 64", "16, 64").replace("32x64", "16x64"), types="tensor<16x64xf32>"),
    ],
    ids=["others read the sum", "the same slice on all devices", "a smaller slice"],
)
def test_other_sums_stay(given: CostProgram) -> None:
    assert with_reduce_scatters(given) is given
