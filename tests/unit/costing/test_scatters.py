"""What runs in the kernel of a scatter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyshardy.costing.chips import find_hardware
from pyshardy.costing.compilers import ACCELERATOR, XLA_ON_GPU, Compiler
from pyshardy.costing.flatten import flatten
from pyshardy.costing.fusion import fuse
from pyshardy.costing.kernels import Kernel
from pyshardy.costing.peak import peak_bytes
from pyshardy.costing.roofline import Roofline

from .build import described

ROWS, AT, PART = "tensor<4096x256xf32>", "tensor<1024x1xi32>", "tensor<1024x256xf32>"
TEXT = f"""func.func @main(%i: {AT}, %u: {PART}, %v: {PART}, %row: tensor<256xf32>) -> ({ROWS}, {ROWS}) {{
  %z = stablehlo.broadcast_in_dim %row, dims = [1] : (tensor<256xf32>) -> {ROWS}
  %t = stablehlo.tanh %u : {PART}
  SCATTER1
  SCATTER2
  return %a, %b : {ROWS}, {ROWS}
}}"""


def scatter(result: str, updates: str) -> str:
    return f"""%{result} = "stablehlo.scatter"(%z, %i, %{updates}) <{{
      scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
        scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }}) : ({ROWS}, {AT}, {PART}) -> {ROWS}"""


def program(first: str = "t", second: str = "v") -> str:
    return TEXT.replace("SCATTER1", scatter("a", first)).replace("SCATTER2", scatter("b", second))


def kernels(text: str, compiler: Compiler) -> tuple[Kernel, ...]:
    return fuse(flatten(described(text)), compiler).kernels


def roots(text: str, compiler: Compiler) -> list[str]:
    return [kernel.root.kind.name.partition(".")[2] for kernel in kernels(text, compiler)]


def test_two_scatters_that_start_from_one_fill_write_it_themselves() -> None:
    assert roots(program(), ACCELERATOR) == ["tanh", "scatter", "scatter"]
    fixed = 2 * 4096 * 256 * 4 + 2 * 1024 * 256 * 4 + 1024 * 4 + 256 * 4
    assert peak_bytes(described(program()), ACCELERATOR) == fixed  # only arguments and results
    assert peak_bytes(described(program()), replace(ACCELERATOR, fills_in_scatters=False)) > fixed


def test_gpus_compute_updates_that_nothing_else_reads() -> None:
    assert roots(program(), XLA_ON_GPU) == ["scatter", "scatter"]
    others = (
        program()
        .replace(f"%a, %b : {ROWS}, {ROWS}", f"%a, %t : {ROWS}, {PART}")
        .replace(f"({ROWS}, {ROWS}) {{", f"({ROWS}, {PART}) {{")
    )
    assert roots(others, XLA_ON_GPU) == ["tanh", "scatter"]


def test_a_scatter_into_what_is_computed_from_an_array_reads_it() -> None:
    text = program().replace("broadcast_in_dim %row, dims = [1] : (tensor<256xf32>)", f"tanh %row : ({ROWS})")
    text = text.replace("tensor<256xf32>", ROWS)
    assert roots(text, ACCELERATOR).count("tanh") == 2


@pytest.mark.parametrize("compiler", [ACCELERATOR, XLA_ON_GPU], ids=["others", "GPUs"])
def test_the_fill_is_written_once_more_than_the_updates(compiler: Compiler) -> None:
    flat = flatten(described(program()))
    block = fuse(flat, compiler)
    price = Roofline(find_hardware("h100"), flat.tensors).price(block.kernels[-1])
    whole, part, places, row = 4096 * 256 * 4, 1024 * 256 * 4, 1024 * 4, 256 * 4
    assert price.bytes == whole + 3 * part + places + row  # updates are read; their places too, and written
