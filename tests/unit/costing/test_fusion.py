"""What becomes one kernel, and what is computed again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyshardy.costing.compilers import ACCELERATOR, XLA_ON_CPU, Compiler
from pyshardy.costing.flatten import flatten
from pyshardy.costing.fusion import fuse

from .build import described

TYPE = "tensor<64x64xf32>"


def kernels(body: str, results: str, compiler: Compiler = XLA_ON_CPU, type_: str = TYPE) -> list[list[str]]:
    """The names of the ops of every kernel."""
    names = results.split(", ")
    types = [type_] * len(names)
    text = f"func.func @main(%x: {TYPE}, %y: {TYPE}) -> ({', '.join(types)}) {{ {body} return {results} : {', '.join(types)} }}"
    found = fuse(flatten(described(text)), compiler).kernels
    return [[op.kind.name.partition(".")[2] for op in kernel.ops] for kernel in found]


def op(name: str, result: str, *operands: str) -> str:
    return f"%{result} = stablehlo.{name} {', '.join('%' + one for one in operands)} : {TYPE}\n"


def test_xla_on_cpus_computes_a_sum_of_two_arrays_again_and_accelerators_do_not() -> None:
    body = op("add", "s", "x", "y") + op("negate", "a", "s") + op("abs", "b", "s")
    assert kernels(body, "%a, %b") == [["add", "negate"], ["add", "abs"]]
    assert kernels(body, "%a, %b", ACCELERATOR) == [["add"], ["negate"], ["abs"]]
    once = op("negate", "s", "x") + op("negate", "a", "s") + op("abs", "b", "s")
    assert kernels(once, "%a, %b", ACCELERATOR) == [["negate", "negate"], ["negate", "abs"]]


@pytest.mark.parametrize("name, times", [("exponential", 1), ("sine", 2), ("divide", 1)])
def test_costly_values_are_made_once(name: str, times: int) -> None:
    operands = ("x", "y") if name == "divide" else ("x",)
    found = kernels(op(name, "s", *operands) + op("negate", "a", "s") + op("abs", "b", "s"), "%a, %b")
    assert sum(kernel.count(name) for kernel in found) == times


def test_a_division_by_a_constant_is_cheap() -> None:
    body = f"%c = stablehlo.constant dense<3.0> : {TYPE}\n" + op("divide", "s", "x", "c")
    found = kernels(body + op("negate", "a", "s") + op("abs", "b", "s"), "%a, %b")
    assert [kernel[-1] for kernel in found] == ["negate", "abs"]


def slices(count: int) -> str:
    return "".join(
        f"%p{at} = stablehlo.slice %s [{at}:{at + 8}, 0:64] : ({TYPE}) -> tensor<8x64xf32>\n" for at in range(count)
    )


def test_an_op_is_computed_at_most_at_fifteen_places_of_a_kernel() -> None:
    for count, again in ((15, True), (16, False)):
        sums = "".join(
            f"%q{at} = stablehlo.add %{f'q{at - 1}' if at > 1 else 'p0'}, %p{at} : tensor<8x64xf32>\n"
            for at in range(1, count)
        )
        found = kernels(op("negate", "s", "x") + slices(count) + sums, f"%q{count - 1}", type_="tensor<8x64xf32>")
        assert ("negate" in found[-1]) == again


def test_what_is_needed_around_a_kept_value_is_kept() -> None:
    body = (
        op("add", "s", "x", "y")
        + f"%p = stablehlo.dot_general %s, %y, contracting_dims = [1] x [0] : ({TYPE}, {TYPE}) -> {TYPE}\n"
        + op("multiply", "r", "s", "p")
    )
    assert kernels(body, "%r") == [["add"], ["dot_general"], ["multiply"]]


def test_a_library_reduces_large_arrays_with_what_multiplies_them() -> None:
    body = (
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n" + op("negate", "n", "x") + op("multiply", "s", "n", "n")
        + f"%r = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [1] : ({TYPE}, tensor<f32>) -> tensor<64xf32>\n"
    )  # fmt: skip
    found = kernels(body, "%r", type_="tensor<64xf32>")
    assert found == [["negate"], ["multiply", "reduce"]] or found == [["negate"], ["multiply", "constant", "reduce"]]
    small = kernels(body, "%r", replace(XLA_ON_CPU, library_elements=10**6), type_="tensor<64xf32>")
    assert len(small) == 1 and "negate" in small[0]


def test_concatenations_and_pads_under_slices_are_made_once() -> None:
    wide = "tensor<128x64xf32>"
    for maker in (
        f"%s = stablehlo.concatenate %x, %y, dim = 0 : ({TYPE}, {TYPE}) -> {wide}\n",
        f"%z = stablehlo.constant dense<0.0> : tensor<f32>\n%s = stablehlo.pad %x, %z, low = [64, 0], high = [0, 0], interior = [0, 0] : ({TYPE}, tensor<f32>) -> {wide}\n",
    ):
        users = "".join(
            f"%p{at} = stablehlo.slice %s [{at}:{at + 64}, 0:64] : ({wide}) -> {TYPE}\n"
            + op("negate", f"r{at}", f"p{at}")
            for at in (0, 32)
        )
        assert [kernel[-1] for kernel in kernels(maker + users, "%r0, %r32")][-2:] == ["negate", "negate"]
        assert sum(("concatenate" in one) + ("pad" in one) for one in kernels(maker + users, "%r0, %r32")) == 1
