"""What only products of the default precision read is kept and sent as bf16 on TPUs."""

from __future__ import annotations

import pytest

from pyshardy.costing.bf16_products import with_bf16_for_products
from pyshardy.costing.compilers import XLA_ON_TPU
from pyshardy.costing.program import CostProgram, walk_ops

from .build import described
from .test_narrowing import assert_consistent, collective, program

MATRIX = """%g = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64,
  replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8x16xf32>) -> tensor<16x16xf32>
"""
PRODUCT = "%{} = stablehlo.dot_general %x, {}, contracting_dims = [1] x [0]{} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>\n"
TURNED = "%t = stablehlo.transpose %g, dims = [1, 0] : (tensor<16x16xf32>) -> tensor<16x16xf32>\n"
ONE, TWO = PRODUCT.format("p", "%g", ""), PRODUCT.format("q", "%g", "")


def narrowed(given: CostProgram) -> CostProgram:
    return with_bf16_for_products(given, XLA_ON_TPU.narrows)


@pytest.mark.parametrize(
    ("body", "results"),
    [
        (MATRIX + ONE, "%p"),
        (MATRIX + ONE + TWO, "%p, %q"),
        (MATRIX + TURNED + PRODUCT.format("p", "%t", ""), "%p"),
    ],
    ids=["a product", "two products", "a product of the transpose"],
)
def test_what_products_alone_read_is_sent_as_bf16(body: str, results: str) -> None:
    types = ", ".join(["tensor<8x16xf32>"] * len(results.split(", ")))
    given = program(body, "tensor<8x16xf32>", results, types)
    found = narrowed(given)
    assert_consistent(found)
    before, after = collective(given).traffic, collective(found).traffic
    assert before is not None and after is not None
    assert collective(found).kind.results[0].dtype == "bf16"
    assert after.sent_bytes == before.sent_bytes // 2
    assert found.body.results == given.body.results


@pytest.mark.parametrize(
    "body",
    [
        MATRIX + PRODUCT.format("p", "%g", ", precision = [HIGHEST, HIGHEST]"),
        MATRIX + PRODUCT.format("p", "%g", ", precision = [DEFAULT, HIGH]"),
        MATRIX + ONE + "%n = stablehlo.negate %g : tensor<16x16xf32>\n",
        MATRIX.replace("f32", "bf16") + ONE.replace("f32", "bf16"),
    ],
    ids=["a precise product", "half precise", "something else reads it", "it is narrow already"],
)
def test_others_stay(body: str) -> None:
    dtype = "bf16" if "bf16" in body else "f32"
    extra = ", %n" if "%n" in body else ""
    types = f"tensor<8x16x{dtype}>" + (", tensor<16x16xf32>" if extra else "")
    given = program(body, f"tensor<8x16x{dtype}>", "%p" + extra, types)
    assert narrowed(given) is given


SQUARE = "tensor<16x16xf32>"
DOT = f"stablehlo.dot_general {{}}, %y, contracting_dims = [1] x [0] : ({SQUARE}, {SQUARE}) -> {SQUARE}"


def types_of(body: str, result: str) -> dict[str, str]:
    """The types of what ops compute, by the name of the op; the last one counts."""
    given = described(
        f"func.func @main(%x: {SQUARE}, %y: {SQUARE}) -> {SQUARE} {{ {body} return {result} : {SQUARE} }}"
    )
    found = narrowed(given)
    assert_consistent(found)
    return {op.kind.name.partition(".")[2]: op.kind.results[0].dtype for op in walk_ops(found.body) if op.results}


def test_what_is_computed_for_a_product_is_kept_as_bf16_and_results_are_not() -> None:
    body = f"%a = {DOT.format('%x')}\n%t = stablehlo.tanh %a : {SQUARE}\n%s = stablehlo.reverse %t, dims = [0] : {SQUARE}\n%b = {DOT.format('%s')}\n"
    assert types_of(body, "%b") == {"dot_general": "f32", "tanh": "bf16", "reverse": "bf16"}
    assert types_of(body, "%t") == {"dot_general": "f32", "tanh": "f32", "reverse": "bf16"}


def test_a_product_of_a_product_reads_bf16() -> None:
    given = described(
        f"func.func @main(%x: {SQUARE}, %y: {SQUARE}) -> {SQUARE} {{ %a = {DOT.format('%x')}\n%b = {DOT.format('%a')}\nreturn %b : {SQUARE} }}"
    )
    first, second = walk_ops(narrowed(given).body)
    assert (first.kind.results[0].dtype, second.kind.results[0].dtype) == ("bf16", "f32")
    assert [tensor.dtype for tensor in second.kind.operands] == ["bf16", "f32"]
