"""Fusion, orders and liveness on small programs whose memory is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyshardy.costing.arguments import argument_category
from pyshardy.costing.compilers import ACCELERATOR, XLA_ON_GPU, Compiler, Order
from pyshardy.costing.flatten import flatten
from pyshardy.costing.fusion import fuse
from pyshardy.costing.order import ordered
from pyshardy.costing.packing import Lifetime, packed_bytes
from pyshardy.costing.peak import find_peak, peak_bytes

from .build import CHAIN, FIVE_ROUNDS, LOOP, described

EXACT = Compiler(alignment=1)
MATRIX = 1024 * 1024 * 4


def names(text: str) -> list[list[str]]:
    kernels = fuse(flatten(described(text))).kernels
    return [[op.kind.name.partition(".")[2] for op in kernel.ops] for kernel in kernels]


def test_elementwise_ops_become_one_kernel() -> None:
    assert names(CHAIN) == [["add", "tanh"], ["dot_general"], ["negate"]]


TWO_USERS = """func.func @main(%x: tensor<8xSOURCE>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.convert %x : (tensor<8xSOURCE>) -> tensor<8xf32>
  %1 = stablehlo.exponential %0 : tensor<8xf32>
  %2 = stablehlo.add %1, %1 : tensor<8xf32>
  %3 = stablehlo.multiply %1, %1 : tensor<8xf32>
  return %2, %3 : tensor<8xf32>, tensor<8xf32>
}"""


def test_a_costly_value_with_two_users_is_made_again_where_that_moves_less() -> None:
    each = [["convert", "exponential", "add"], ["convert", "exponential", "multiply"]]
    assert names(TWO_USERS.replace("SOURCE", "bf16")) == each
    assert names(TWO_USERS.replace("SOURCE", "f64")) == [["convert", "exponential"], ["add"], ["multiply"]]
    stored = replace(ACCELERATOR, repeats_costly=False)
    kernels = fuse(flatten(described(TWO_USERS.replace("SOURCE", "bf16"))), stored).kernels
    assert [len(kernel.ops) for kernel in kernels] == [2, 1, 1]


def test_a_cheap_value_is_made_for_every_user() -> None:
    text = TWO_USERS.replace("SOURCE", "f64").replace("exponential", "negate")
    assert names(text) == [["convert", "negate", "add"], ["convert", "negate", "multiply"]]


def test_dead_ops_and_constant_operands_take_nothing() -> None:
    text = """func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %c = stablehlo.constant dense<2.0> : tensor<8xf32>
      %0 = stablehlo.tanh %x : tensor<8xf32>
      %1 = stablehlo.multiply %x, %c : tensor<8xf32>
      return %1 : tensor<8xf32>
    }"""
    assert peak_bytes(described(text), EXACT) == 64


def test_the_result_of_a_product_does_not_take_the_memory_of_its_operands() -> None:
    peak = find_peak(described(CHAIN), flatten(described(CHAIN)), EXACT)
    assert peak.argument_bytes == 2 * MATRIX and peak.output_bytes == MATRIX
    # tanh goes where the result will be, the product beside it, and the result into the memory of tanh
    assert peak.temporary_bytes == MATRIX
    assert peak.bytes == 4 * MATRIX
    assert dict(peak.categories)["parameters"] == MATRIX
    assert max(peak.curve) == peak.bytes


def test_a_donated_argument_gives_its_memory_to_a_result() -> None:
    text = """func.func @main(%x: tensor<64xf32> {tf.aliasing_output = 0 : i32}) -> tensor<64xf32> {
      %0 = stablehlo.negate %x : tensor<64xf32>
      return %0 : tensor<64xf32>
    }"""
    assert peak_bytes(described(text), EXACT) == 256
    assert peak_bytes(described(text.replace(" {tf.aliasing_output = 0 : i32}", "")), EXACT) == 512


def test_a_loop_carries_its_state_in_place() -> None:
    program = described(LOOP)
    (loop,) = [op for op in program.body.ops if op.is_loop]
    assert loop.rounds == 5
    peak = find_peak(program, flatten(program), EXACT)
    assert peak.argument_bytes + peak.output_bytes == 512
    assert peak.temporary_bytes <= 16  # the counter and what compares it


def test_what_a_loop_makes_inside_is_on_top() -> None:
    inside = "%big = stablehlo.dot_general %a, %a, contracting_dims = [] x [] : (tensor<64xf32>, tensor<64xf32>) -> tensor<64x64xf32>"
    sort = "stablehlo.reduce(%big init: %z) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>"
    text = LOOP.replace(
        "%b = stablehlo.multiply %a, %a : tensor<64xf32>",
        f"%z = stablehlo.constant dense<0.0> : tensor<f32>\n{inside.replace('contracting_dims = [] x []', 'contracting_dims = [] x []')}\n"
        f'%s = "stablehlo.sort"(%big) <{{dimension = 0 : i64}}> ({{^bb0(%p: tensor<f32>, %q: tensor<f32>):\n'
        f"%l = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>\nstablehlo.return %l : tensor<i1>}})"
        f" : (tensor<64x64xf32>) -> tensor<64x64xf32>\n%b = {sort.replace('%big', '%s')}",
    )
    assert peak_bytes(described(text), EXACT) >= 512 + 64 * 64 * 4


def test_orders_give_the_same_program() -> None:
    program = described(CHAIN)
    for order in Order:
        assert peak_bytes(program, replace(ACCELERATOR, order=order)) >= 3 * MATRIX


def test_what_frees_memory_runs_as_soon_as_it_may() -> None:
    lines, sums = [], []
    for index in range(6):
        lines.append(
            f"%p{index} = stablehlo.dot_general %x, %y{index}, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>"
        )
        sums.append(
            f"%s{index} = stablehlo.reduce(%p{index} init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<f32>"
        )
    results = ", ".join(f"%s{index}" for index in range(6))
    arguments = ", ".join(f"%y{index}: tensor<64x64xf32>" for index in range(6))
    types = ", ".join(["tensor<f32>"] * 6)
    text = (
        f"func.func @main(%x: tensor<64x64xf32>, {arguments}) -> ({types}) {{\n%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        + "\n".join(lines + sums)
        + f"\nreturn {results} : {types}\n}}"
    )
    program = described(text)
    assert peak_bytes(program, EXACT) - peak_bytes(program, replace(EXACT, order=Order.FREEING)) == 5 * 64 * 64 * 4


@pytest.mark.parametrize(
    "buffers, wanted",
    [([], 0), ([(4, 0, 1), (4, 1, 2)], 8), ([(4, 0, 0), (4, 1, 1)], 4), ([(8, 0, 1), (4, 0, 3), (8, 2, 3)], 12)],
)
def test_packing(buffers: list[tuple[int, int, int]], wanted: int) -> None:
    assert packed_bytes([Lifetime(*one) for one in buffers]) == wanted


@pytest.mark.parametrize(
    "name, category",
    [("params['w']", "parameters"), ("opt_state[0].mu['w']", "optimizer state"), ("x", "other arguments"),
     ("state.params['w']", "parameters"), ("state.opt_state[0]", "optimizer state"), ("batch['tokens']", "other arguments"),
     ("state['blocks'][0]['attn']['q']['kernel']", "parameters"), ("state[0].mu['dense']['kernel']", "optimizer state"),
     ("train_state['model']['norm']['scale']", "parameters"), ("state['step']", "optimizer state"),
     ("s[0]['linear']['w']", "parameters"), ("s[2][0].nu['linear']['w']", "optimizer state"),
     ("batch['weight']", "other arguments"), ("cache['k']", "cache"), ("opt[0].mu['kernel']", "optimizer state"),
     ("opt_state[0]['dense']['kernel']", "optimizer state"), ("state['m']['dense']['kernel']", "optimizer state"),
     ("state['attn']['v']['kernel']", "parameters"), ("", "other arguments")],
)  # fmt: skip
def test_what_an_argument_is(name: str, category: str) -> None:
    assert argument_category(name) == category


SUM = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<1024x1024xf32>) -> tensor<f32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.tanh %x : tensor<1024x1024xf32>
  %1 = "stablehlo.all_reduce"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
    replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %2 = stablehlo.reduce(%1 init: %z) applies stablehlo.maximum across dimensions = [0, 1]
    : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}"""


def matrices(text: str, compiler: Compiler) -> int:
    """The matrices that are held at the peak."""
    return peak_bytes(described(text), compiler) // MATRIX


def test_a_sum_over_devices_is_where_its_operand_was_on_gpus() -> None:
    assert matrices(SUM, XLA_ON_GPU) == 2
    assert matrices(SUM, replace(XLA_ON_GPU, sums_in_place=False)) == 3


SHARED_START = (
    """func.func @main(%x: tensor<1024x1024xf32>) -> (tensor<f32>, tensor<f32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %t = stablehlo.tanh %x : tensor<1024x1024xf32>
  %r:3 = stablehlo.while(%i = %zero, %a = %t, %b = %t)
    : tensor<i32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>
"""
    + FIVE_ROUNDS
    + """    %d = stablehlo.negate %a : tensor<1024x1024xf32>
    %e = stablehlo.tanh %b : tensor<1024x1024xf32>
    stablehlo.return %j, %d, %e : tensor<i32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>
  }
  %s = stablehlo.reduce(%r#1 init: %z) applies stablehlo.maximum across dimensions = [0, 1]
    : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<f32>
  %u = stablehlo.reduce(%r#2 init: %z) applies stablehlo.maximum across dimensions = [0, 1]
    : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<f32>
  return %s, %u : tensor<f32>, tensor<f32>
}"""
)


def test_parts_of_a_state_that_start_from_one_value_take_a_buffer_each() -> None:
    assert matrices(SHARED_START, ACCELERATOR) == 3  # the argument, the value from which both start, and one more
    assert matrices(SHARED_START.replace("%b = %t", "%b = %x"), ACCELERATOR) == 3


PARTS = """func.func @main(%x: tensor<1024x1024xf32>) -> tensor<f32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %a = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
    : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %b = stablehlo.tanh %a : tensor<1024x1024xf32>
  %c = SORTED
  %d = stablehlo.reduce(%c init: %z) applies stablehlo.maximum across dimensions = [0, 1]
    : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<f32>
  return %d : tensor<f32>
}""".replace(
    "SORTED",
    """"stablehlo.sort"(%b) <{dimension = 0 : i64}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %less = stablehlo.compare LT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>""",
)


def test_nothing_is_written_where_one_of_several_results_was() -> None:
    assert matrices(PARTS, EXACT) == 2  # the argument, and one buffer for a product, what is computed of it, and sorted
    assert matrices(PARTS, replace(EXACT, in_parts=frozenset())) == 2
    assert matrices(PARTS, replace(EXACT, in_parts=frozenset(("stablehlo.dot_general",)))) == 3


def test_zeros_are_written_right_before_they_are_read() -> None:
    text = """func.func @main(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %i = stablehlo.iota dim = 0 : tensor<1024x1024xf32>
      %a = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
        : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
      %s = "stablehlo.sort"(%i) <{dimension = 0 : i64}> ({
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %c = stablehlo.compare LT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }) : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
      %b = stablehlo.dot_general %a, %s, contracting_dims = [1] x [0]
        : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
      return %b : tensor<1024x1024xf32>
    }"""
    kernels = fuse(flatten(described(text))).kernels
    found = [one.root.kind.name.partition(".")[2] for one in ordered(kernels, Order.FREEING, lambda value: 1, set())]
    assert found == ["dot_general", "iota", "sort", "dot_general"]
    assert len(ordered(kernels, Order.PROGRAM, lambda value: 1, set())) == len(kernels)
