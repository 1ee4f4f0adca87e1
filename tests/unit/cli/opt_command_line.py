"""What command lines of `pyshardy-opt` are given, and what they give."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import NamedTuple

from pyshardy.cli.opt import run_opt

GOOD = """func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.sine %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
PRINTED = """module {
  func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.sine %arg0 : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
"""
EMPTY_PRINTED = "module {\n  func.func @f() {\n    return\n  }\n}\n"
BAD = "func.func @main() {\n  %0 = stablehlo.sine %b : tensor<8xf32>\n}\n"
RULE = "sdy.sharding_rule"
WITH_UNUSED = GOOD + "func.func private @unused() {\n  return\n}\n"
SHARDED = """sdy.mesh @m = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.sine %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
UNKNOWN = '"t.op"() : () -> ()\n'
GROUPED = """sdy.mesh @m = <["x"=2]>
func.func @main(%a: tensor<8xf32>, %b: tensor<4xf32>) {
  sdy.sharding_group %a group_id=1 : tensor<8xf32>
  sdy.sharding_group %b group_id=1 : tensor<4xf32>
  return
}
"""
GROUP_ERROR = "'sdy.sharding_group' op puts values of different shapes into the sharding group 1"

Put = Callable[..., str]
"""Writes a module to a file and gives its path."""


class Outcome(NamedTuple):
    """What a command line did."""

    status: int
    out: str
    errors: str


def run(*argv: str) -> Outcome:
    stdout, stderr = io.BytesIO(), io.StringIO()
    status = run_opt(argv, stdout, stderr)
    return Outcome(status, stdout.getvalue().decode(errors="replace"), stderr.getvalue())
