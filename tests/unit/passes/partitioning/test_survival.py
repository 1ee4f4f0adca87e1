"""No pass loses what it does not know: locations, names of arguments, foreign attributes, ops of unknown dialects."""

from __future__ import annotations

import re

import pytest
from jaxlib.mlir import ir

from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.passes.base import Pass
from pyshardy.passes.pipeline import run_passes
from pyshardy.passes.pipelines import PIPELINES, parse_pipeline
from pyshardy.passes.table import PASSES
from pyshardy.transforms.context import PassContext

PROGRAM = """
module @"my name" attributes {my.module = 1 : i32, mhlo.num_partitions = 4 : i32} {
  sdy.mesh @m = <["a"=2, "b"=2]> {my.mesh} loc("at mesh")
  func.func @main(
      %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {?}]>, my.argument = "first"} loc("at x"),
      %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"b"}]>, mhlo.layout_mode = "default"} loc("at y"),
      %n: tensor<i32> loc("at n"))
      -> (tensor<8x8xf32> {jax.result_info = "out", sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}, tensor<8x8xf32>)
      attributes {my.function = [1, 2]} {
    %0 = stablehlo.add %x, %y {my.sum, sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a"}, {?}]>]>}
        : tensor<8x8xf32> loc("at sum"("file.py":3:4))
    %1 = "other.op"(%0) {my.unknown = dense<[1, 2]> : tensor<2xi8>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
        loc(callsite("at unknown" at "outer.py":5:6))
    "other.holder"(%1) ({
    ^bb0(%held: tensor<8x8xf32> loc("at held")):
      "other.inner"(%held) {my.inner} : (tensor<8x8xf32>) -> () loc("at inner")
    }) {my.holder} : (tensor<8x8xf32>) -> () loc("at holder")
    %2 = func.call @f(%1) {my.call} : (tensor<8x8xf32>) -> tensor<8x8xf32> loc(fused["at call", "file.py":7:8])
    %3 = func.call @f(%2) {mhlo.frontend_attributes = {k = "my.frontend"}} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %4:2 = stablehlo.while(%i = %n, %s = %3) : tensor<i32>, tensor<8x8xf32> attributes {my.loop}
      cond {
        %c = stablehlo.compare LT, %i, %n {my.condition} : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %t = stablehlo.tanh %s {my.body} : tensor<8x8xf32> loc("at body")
        stablehlo.return %i, %t : tensor<i32>, tensor<8x8xf32>
      } loc("at loop")
    %5 = sdy.manual_computation(%4#1) in_shardings=[<@m, [{"a"}, {}]>] out_shardings=[<@m, [{"a"}, {}]>]
        manual_axes={"a"} (%local: tensor<4x8xf32> loc("at local")) {
      %6 = stablehlo.negate %local {my.local} : tensor<4x8xf32> loc("at negate")
      sdy.return %6 : tensor<4x8xf32>
    } {my.manual} : (tensor<8x8xf32>) -> tensor<8x8xf32> loc("at manual")
    %7 = stablehlo.dot %5, %y {my.dot} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("at dot")
    return {my.return} %7, %4#1 : tensor<8x8xf32>, tensor<8x8xf32> loc("at return")
  } loc("at main")
  func.func private @f(%z: tensor<8x8xf32> {my.parameter} loc("at z")) -> (tensor<8x8xf32> {my.result})
      attributes {my.callee} {
    %0 = stablehlo.custom_call @mine(%z) {my.custom, backend_config = "my.config", has_side_effect = true}
        : (tensor<8x8xf32>) -> tensor<8x8xf32> loc("at custom")
    return %0 : tensor<8x8xf32> loc("at end")
  } loc("at f")
} loc("at module")
"""
OPTIONS = {"canonicalize": "{enable-patterns=sdy-collective,sdy-reshard}"}
PIPELINES_WITH_OPTIONS = [
    *PIPELINES,
    *(f"{name}{{dedup-functions-fully=true}}" for name in ("sdy-import-pipeline", "sdy-propagation-pipeline")),
]
_MARK = re.compile(r"my\.\w+|\"at \w+\"|my name|\w+\.py\":\d+:\d+|mhlo\.\w+|jax\.\w+|other\.\w+")

OF_THE_CALLEE = {"my.callee", "my.parameter", "my.result", '"at f"'}
"""What has no place once a function has become a named computation.

Source: docs/semantics/import.md#sdy-import-func-calls
"""
BEFORE = {
    "sdy-convert-global-to-local": "sdy-export-pipeline{partitioner-stage=resolve-permutation-factors inline-meshes=false},"
    "pyshardy-make-partitionable,sdy-reshard-to-collectives",
    "sdy-per-instruction-partitioning": "sdy-export-pipeline{mark-partial-result-with-unreduced-axes=true "
    "enable-insert-explicit-collectives=true inline-meshes=false},pyshardy-make-partitionable",
}
"""What prepares the module for a pass that does not take any."""
OF_THE_MANUAL_COMPUTATION = {"my.manual", '"at manual"', '"at local"'}
"""What has no place once the body of a manual computation has taken its place."""
OF_THE_CALL = {
    "my.call", "my.frontend", "mhlo.frontend_attributes", '"at end"',
    *OF_THE_CALLEE, '"at z"',
}  # fmt: skip
"""What has no place once a function stands where it was called."""
LOST: dict[str, set[str]] = {
    "pyshardy-inline-and-order": OF_THE_CALL,
    "pyshardy-xla-view-pipeline": OF_THE_CALL,
    "sdy-import-func-calls": OF_THE_CALLEE,
    "sdy-propagation-pipeline": OF_THE_CALLEE,
    "sdy-convert-global-to-local": OF_THE_MANUAL_COMPUTATION,
    "sdy-inline-meshes": {"my.mesh", '"at mesh"'},
    "sdy-export-pipeline": {"my.mesh", '"at mesh"'},
}
"""What passes lose on purpose."""


def marks(module: Module) -> set[str]:
    """What a module holds of what passes do not know."""
    return set(_MARK.findall(module.text(debug_info=True)))


def parsed() -> Module:
    return Module.parse(PROGRAM, allow_unregistered_dialects=True)


def lost(passes: list[Pass], before: str = "") -> set[str]:
    """What is no longer there after passes, of what was there when they began."""
    module = run_passes(parsed(), parse_pipeline(before))
    result = run_passes(module, passes)
    result.verify()
    return marks(module) - marks(result)


def test_the_program_is_full_of_marks() -> None:
    assert len(marks(parsed())) >= 50


@pytest.mark.parametrize("name", [*PASSES, *PIPELINES_WITH_OPTIONS])
def test_everything_survives(name: str) -> None:
    passes = parse_pipeline(name + OPTIONS.get(name, ""))
    assert lost(passes, BEFORE.get(name, "")) == LOST.get(name, set())


class Forget(Pass):
    """Forget one thing in the body of the main function."""

    what: str
    name = "forget"

    def run(self, op: Op, context: PassContext) -> None:
        main = next(inner for inner in op.region.block if inner.name == "func.func")
        first, second, third, *_ = main.region.block
        if self.what == "attribute":
            first.remove_attr("my.sum")
        elif self.what == "location":
            first.location = ir.Location.unknown()
        elif self.what == "argument":
            main.region.block.args[0].location = None
        else:
            third.erase()


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("attribute", {"my.sum"}),
        ("location", {'"at sum"', 'file.py":3:4'}),
        ("argument", {'"at x"'}),
        ("op", {"other.holder", "other.inner", "my.holder", "my.inner", '"at holder"', '"at inner"', '"at held"'}),
    ],
)
def test_a_loss_is_found(what: str, expected: set[str]) -> None:
    assert lost([Forget(what)]) == expected
