"""Small programs in MLIR's text, as an estimate sees them."""

from __future__ import annotations

import pyshardy
from pyshardy.costing.program import CostProgram
from pyshardy.ir.cost_program import cost_program
from pyshardy.ir.shardings import module_meshes


def described(text: str) -> CostProgram:
    """The description of a program of one device."""
    root = pyshardy.load(text).copy_root()
    return cost_program(root, module_meshes(root))


CHAIN = """
func.func @main(%x: tensor<1024x1024xf32> loc("params['w']"), %y: tensor<1024x1024xf32> loc("tokens"))
    -> tensor<1024x1024xf32> {
  %0 = stablehlo.add %x, %y : tensor<1024x1024xf32>
  %1 = stablehlo.tanh %0 : tensor<1024x1024xf32>
  %2 = stablehlo.dot_general %1, %y, contracting_dims = [1] x [0]
    : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %3 = stablehlo.negate %2 : tensor<1024x1024xf32>
  return %3 : tensor<1024x1024xf32>
}
"""
"""Two element-wise ops that become one kernel, a product, and one more element-wise op."""

FIVE_ROUNDS = """  cond {
    %n = stablehlo.constant dense<5> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
"""
"""What follows the types of a loop that counts %i from 0 to 5: its condition, and its body up to the next number %j."""

LOOP = f"""
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<64xf32>
{FIVE_ROUNDS}    %b = stablehlo.multiply %a, %a : tensor<64xf32>
    stablehlo.return %j, %b : tensor<i32>, tensor<64xf32>
  }}
  return %0#1 : tensor<64xf32>
}}
"""
"""A loop of five rounds."""
