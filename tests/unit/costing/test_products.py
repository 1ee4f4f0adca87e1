"""What compilers for TPUs compute in the kernel of a product."""

from __future__ import annotations

from dataclasses import replace

from pyshardy.costing.compilers import ACCELERATOR
from pyshardy.costing.flatten import flatten
from pyshardy.costing.fusion import fuse

from .build import described

TPU = replace(ACCELERATOR, fuses_into_products=True)
TYPE = "tensor<64x64xf32>"
DOT = f"stablehlo.dot_general %a, %y, contracting_dims = [1] x [0] : ({TYPE}, {TYPE}) -> {TYPE}"


def names(body: str, results: str) -> list[list[str]]:
    types = ", ".join([TYPE] * len(results.split(", ")))
    text = f"func.func @main(%x: {TYPE}, %y: {TYPE}) -> ({types}) {{ {body} return {results} : {types} }}"
    found = fuse(flatten(described(text)), TPU).kernels
    return [[op.kind.name.partition(".")[2] for op in kernel.ops] for kernel in found]


def test_operands_and_results_are_computed_beside_the_product() -> None:
    body = f"%a = stablehlo.negate %x : {TYPE}\n%d = {DOT}\n%e = stablehlo.tanh %d : {TYPE}\n"
    assert names(body, "%e") == [["negate", "dot_general", "tanh"]]


def test_a_result_that_others_read_is_stored() -> None:
    body = f"%a = stablehlo.negate %x : {TYPE}\n%d = {DOT}\n%e = stablehlo.tanh %d : {TYPE}\n"
    assert names(body, "%d, %e") == [["negate", "dot_general"], ["tanh"]]


def test_a_product_of_a_product_is_a_kernel_of_its_own() -> None:
    body = f"%a = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : ({TYPE}, {TYPE}) -> {TYPE}\n%d = {DOT}\n"
    assert names(body, "%d") == [["dot_general"], ["dot_general"]]


TWO = f"""%d = {DOT}
%e = stablehlo.dot_general %y, %a, contracting_dims = [1] x [0] : ({TYPE}, {TYPE}) -> {TYPE}
"""


def test_what_only_products_read_is_computed_in_each() -> None:
    body = f"%a = stablehlo.tanh %x : {TYPE}\n{TWO}"
    assert names(body, "%d, %e") == [["tanh", "dot_general"], ["tanh", "dot_general"]]


def test_what_others_read_too_is_stored_once() -> None:
    body = f"%a = stablehlo.multiply %x, %y : {TYPE}\n{TWO}"
    assert names(body, "%a, %d, %e") == [["multiply"], ["dot_general"], ["dot_general"]]
