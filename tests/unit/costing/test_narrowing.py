"""Collectives that move the narrower of two types."""

from __future__ import annotations

import pytest

from pyshardy.costing.compilers import XLA_ON_GPU, XLA_ON_TPU
from pyshardy.costing.narrowing import with_narrow_collectives
from pyshardy.costing.program import CostOp, CostProgram, walk_ops

from .build import described

GATHER = """%g = "stablehlo.all_gather"({operand}) <{{all_gather_dim = 0 : i64,
  replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}> : (tensor<8x4x{dtype}>) -> tensor<16x4x{dtype}>
"""
NARROW = "%n = stablehlo.convert %g : (tensor<16x4xf32>) -> tensor<16x4xbf16>\n"
WIDE = "%w = stablehlo.convert %x : (tensor<8x4xbf16>) -> tensor<8x4xf32>\n"


def program(body: str, operand: str, results: str, types: str) -> CostProgram:
    return described(f"func.func @main(%x: {operand}) -> ({types}) {{ {body} return {results} : {types} }}")


def collective(given: CostProgram) -> CostOp:
    (found,) = (op for op in walk_ops(given.body) if op.traffic is not None)
    return found


def assert_consistent(given: CostProgram) -> None:
    """Every value is made before it is read, and has the type that its op says."""
    made = set(given.body.arguments)
    for op in walk_ops(given.body):
        assert made.issuperset(op.operands), "a value is read before it is made"
        assert [given.tensors[value] for value in op.operands] == [*op.kind.operands], "an operand has another type"
        assert [given.tensors[value] for value in op.results] == [*op.kind.results], "a result has another type"
        made.update(op.results)
    assert made.issuperset(given.body.results)


SHAPED = """%t = stablehlo.transpose %g, dims = [1, 0] : (tensor<16x4xf32>) -> tensor<4x16xf32>
%s = stablehlo.reshape %t : (tensor<4x16xf32>) -> tensor<64xf32>
%n = stablehlo.convert %s : (tensor<64xf32>) -> tensor<64xbf16>
"""
BEFORE = """%s = stablehlo.reshape %w : (tensor<8x4xf32>) -> tensor<4x8xf32>
%t = stablehlo.transpose %s, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
"""


@pytest.mark.parametrize(
    "given",
    [
        program(GATHER.format(operand="%x", dtype="f32") + NARROW, "tensor<8x4xf32>", "%n", "tensor<16x4xbf16>"),
        program(GATHER.format(operand="%x", dtype="f32") + SHAPED, "tensor<8x4xf32>", "%n", "tensor<64xbf16>"),
        program(WIDE + GATHER.format(operand="%w", dtype="f32"), "tensor<8x4xbf16>", "%g", "tensor<16x4xf32>"),
        program(WIDE + BEFORE + GATHER.format(operand="%t", dtype="f32"), "tensor<8x4xbf16>", "%g", "tensor<16x4xf32>"),
        program(
            WIDE + GATHER.format(operand="%w", dtype="f32"),
            "tensor<8x4xbf16>",
            "%g, %w",
            "tensor<16x4xf32>, tensor<8x4xf32>",
        ),
    ],
    ids=[
        "narrowed after",
        "shaped and narrowed after",
        "widened before",
        "widened and shaped before",
        "read elsewhere",
    ],
)
def test_the_narrower_type_moves(given: CostProgram) -> None:
    before, found = collective(given).traffic, with_narrow_collectives(given, XLA_ON_GPU)
    assert_consistent(found)
    op, after = collective(found), collective(found).traffic
    assert before is not None and after is not None
    assert op.kind.operands[0].dtype == op.kind.results[0].dtype == "bf16"
    assert (after.bytes_before, after.bytes_after) == (before.bytes_before // 2, before.bytes_after // 2)
    assert after.sent_bytes == before.sent_bytes // 2 == 8 * 4 * 2
    assert found.body.results == given.body.results


@pytest.mark.parametrize(
    "given",
    [
        program(
            GATHER.format(operand="%x", dtype="f32") + NARROW,
            "tensor<8x4xf32>",
            "%g, %n",
            "tensor<16x4xf32>, tensor<16x4xbf16>",
        ),
        program(
            GATHER.format(operand="%x", dtype="bf16")
            + "%n = stablehlo.convert %g : (tensor<16x4xbf16>) -> tensor<16x4xf32>",
            "tensor<8x4xbf16>",
            "%n",
            "tensor<16x4xf32>",
        ),
        program(
            """%g = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
              ^bb0(%p: tensor<f32>, %q: tensor<f32>):
                %s = stablehlo.add %p, %q : tensor<f32>
                stablehlo.return %s : tensor<f32>
            }) : (tensor<16x4xf32>) -> tensor<16x4xf32>
            """
            + NARROW,
            "tensor<16x4xf32>",
            "%n",
            "tensor<16x4xbf16>",
        ),
    ],
    ids=["something else reads the wide result", "it is narrow already", "a sum, which would round"],
)
def test_others_stay(given: CostProgram) -> None:
    assert with_narrow_collectives(given, XLA_ON_GPU) is given


def test_the_check_can_fail() -> None:
    given = program(GATHER.format(operand="%x", dtype="f32") + NARROW, "tensor<8x4xf32>", "%n", "tensor<16x4xbf16>")
    found = with_narrow_collectives(given, XLA_ON_GPU)
    with pytest.raises(AssertionError, match="another type"):
        assert_consistent(CostProgram(given.tensors, found.functions, found.main, found.inputs, found.outputs))


def test_for_tpus_a_sum_moves_the_narrower_type_too() -> None:
    total = """%g = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %s = stablehlo.add %p, %q : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) : (tensor<16x4xf32>) -> tensor<16x4xf32>
    """
    given = program(total + NARROW, "tensor<16x4xf32>", "%n", "tensor<16x4xbf16>")
    assert collective(with_narrow_collectives(given, XLA_ON_TPU)).kind.results[0].dtype == "bf16"
