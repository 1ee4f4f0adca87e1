"""Stacks of layers that are sharded on the layer dimension."""

from __future__ import annotations

import pytest

from pyshardy.costing.program import CostProgram, walk_ops
from pyshardy.costing.stacks import with_whole_stacks

from .build import described

GROUPS = "dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>"
HANDLE = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
TEXT = f"""sdy.mesh @mesh = <["x"=8]>
func.func @main(%w: tensor<1x64x32xf32>, %i: tensor<i32>) -> tensor<1x64x32xf32> {{
  %z = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.all_to_all"(%w) <{{split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 8 : i64,
    replica_groups = {GROUPS}, {HANDLE}}}> : (tensor<1x64x32xf32>) -> tensor<8x8x32xf32>
  %1 = stablehlo.dynamic_slice %0, %i, %z, %z, sizes = [1, 8, 32]
    : (tensor<8x8x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x32xf32>
  %2 = "stablehlo.all_gather"(%1) <{{all_gather_dim = 1 : i64, replica_groups = {GROUPS}, use_global_device_ids,
    {HANDLE}}}> : (tensor<1x8x32xf32>) -> tensor<1x64x32xf32>
  return %2 : tensor<1x64x32xf32>
}}"""


def collectives(program: CostProgram) -> list[tuple[str, int, int]]:
    found = [op.traffic for op in walk_ops(program.body) if op.traffic is not None]
    return [(one.kind, one.bytes_after, one.sent_bytes) for one in found]


def test_the_whole_stack_is_gathered_and_a_slice_taken() -> None:
    given = described(TEXT)
    layer = 64 * 32 * 4
    assert [kind for kind, _, _ in collectives(given)] == ["all_to_all", "all_gather"]
    found = with_whole_stacks(given)
    assert collectives(found) == [("all_gather", 8 * layer, 7 * layer)]
    gather, taken = [op for op in walk_ops(found.body) if op.kind.name != "stablehlo.constant"]
    assert [tensor.shape for tensor in gather.kind.results] == [(8, 64, 32)]
    assert taken.kind.operands[0].shape == (8, 64, 32) and taken.kind.results[0].shape == (1, 64, 32)
    assert found.tensors[gather.results[0]].bytes == 8 * layer
    assert taken.results == found.body.results and taken.operands[0] == gather.results[0]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "return %2 : tensor<1x64x32xf32>",
            "%3 = stablehlo.sine %0 : tensor<8x8x32xf32>\nreturn %2 : tensor<1x64x32xf32>",
        ),
        ("sizes = [1, 8, 32]", "sizes = [8, 8, 32]"),
    ],
    ids=["another reader", "nothing is taken from the stack"],
)
def test_others_stay(before: str, after: str) -> None:
    text = TEXT.replace(before, after)
    if "sizes = [8" in after:
        text = text.replace("-> tensor<1x8x32xf32>", "-> tensor<8x8x32xf32>").replace(
            "(tensor<1x8x32xf32>)", "(tensor<8x8x32xf32>)"
        )
        text = text.replace("-> tensor<1x64x32xf32>\n  return", "-> tensor<8x64x32xf32>\n  return")
        text = text.replace("%i: tensor<i32>) -> tensor<1x64x32xf32>", "%i: tensor<i32>) -> tensor<8x64x32xf32>")
        text = text.replace("return %2 : tensor<1x64x32xf32>", "return %2 : tensor<8x64x32xf32>")
    given = described(text)
    assert with_whole_stacks(given) is given
