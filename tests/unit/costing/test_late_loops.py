"""Loops of products that are cut into parts run right before their results are read."""

from __future__ import annotations

from collections.abc import Sequence

from pyshardy.costing.compilers import XLA_ON_TPU
from pyshardy.costing.flatten import flatten
from pyshardy.costing.fusion import fuse
from pyshardy.costing.kernels import Kernel
from pyshardy.costing.late_loops import with_late_loops

from .build import FIVE_ROUNDS, described

PART = "tensor<64x64xf32>"
PASSED = f'"stablehlo.collective_permute"(%p) <{{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>}}> : ({PART}) -> {PART}'
MULTIPLIED = f"stablehlo.dot_general %p, %p, contracting_dims = [1] x [0] : ({PART}, {PART}) -> {PART}"


def loop(*body: str) -> str:
    lines = "\n".join(f"%b{at} = {line}" for at, line in enumerate(body))
    last = f"%b{len(body) - 1}"
    return f"""%zero = stablehlo.constant dense<0> : tensor<i32>
      %r:3 = stablehlo.while(%i = %zero, %p = %x, %s = %x) : tensor<i32>, {PART}, {PART}
      {FIVE_ROUNDS}{lines}
        stablehlo.return %j, %b0, {last} : tensor<i32>, {PART}, {PART}
      }}"""


def kernels(given: str) -> list[Kernel]:
    """A loop, two products that do not read its result, and one that does."""
    text = f"""sdy.mesh @mesh = <["x"=2]>
    func.func @main(%x: {PART}, %y: {PART}) -> {PART} {{
      {given}
      %d = stablehlo.dot_general %y, %y, contracting_dims = [1] x [0] : ({PART}, {PART}) -> {PART}
      %e = stablehlo.dot_general %d, %y, contracting_dims = [1] x [0] : ({PART}, {PART}) -> {PART}
      %f = stablehlo.dot_general %e, %r#2, contracting_dims = [1] x [0] : ({PART}, {PART}) -> {PART}
      return %f : {PART}
    }}"""
    found = fuse(flatten(described(text), XLA_ON_TPU), XLA_ON_TPU).kernels
    return [kernel for kernel in found if kernel.reads]


def places_of_loop(order: Sequence[Kernel]) -> int:
    (place,) = [at for at, kernel in enumerate(order) if kernel.root.is_loop]
    return place


def test_a_loop_of_parts_runs_before_the_first_kernel_that_reads_it() -> None:
    given = kernels(loop(PASSED, MULTIPLIED))
    found, _ = with_late_loops(given, {})
    assert (places_of_loop(given), places_of_loop(found)) == (0, 2)
    assert sorted(map(id, found)) == sorted(map(id, given))


def test_other_loops_stay() -> None:
    chain = [MULTIPLIED, MULTIPLIED.replace("%p, %p", "%p, %b1"), MULTIPLIED.replace("%p, %p", "%p, %b2")]
    for body in ([PASSED], [MULTIPLIED], [PASSED, *chain]):
        given = kernels(loop(*body))
        assert with_late_loops(given, {})[0] == given


def test_what_runs_beside_others_keeps_its_end() -> None:
    """The first kernel after the loop, beside which the one behind it runs."""
    given = kernels(loop(PASSED, MULTIPLIED))
    assert with_late_loops(given, {1: 3})[1] == {0: 3}
    assert with_late_loops(given, {1: len(given)})[1] == {0: len(given)}
