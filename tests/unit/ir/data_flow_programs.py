"""Programs with one op of every kind that has data-flow edges, on tensors of 8 elements and the meshes `@m`, `@n`."""

from __future__ import annotations

from pyshardy.ir.blocks import Use
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Value
from pyshardy.passes.pipeline import run_pipeline

from .reading import find

MESHES = 'sdy.mesh @m = <["x"=2, "y"=2]>\nsdy.mesh @n = <["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>\n'
T = "tensor<8xf32>"
ARGS = f"%a: {T}, %b: {T}, %n: tensor<i32>, %p: tensor<i1>"

WHILE = f"""%0:2 = stablehlo.while(%i = %a, %j = %b) : {T}, {T} cond {{
  stablehlo.return %p : tensor<i1>
}} do {{
  stablehlo.return %j, %i : {T}, {T}
}}"""
CASE = f"""%0:2 = "stablehlo.case"(%n) ({{
  stablehlo.return %a, %b : {T}, {T}
}}, {{
  stablehlo.return %b, %b : {T}, {T}
}}) : (tensor<i32>) -> ({T}, {T})"""
IF = f"""%0 = "stablehlo.if"(%p) ({{
  stablehlo.return %a : {T}
}}, {{
  stablehlo.return %b : {T}
}}) : (tensor<i1>) -> {T}"""
BARRIER = f"%0:2 = stablehlo.optimization_barrier %a, %b : {T}, {T}"
NAMED = f"""%0 = sdy.named_computation<"n">(%a, %b) (%i: {T}, %j: {T}) {{
  sdy.return %j : {T}
}} : ({T}, {T}) -> {T}"""
NAMED_SHARDED = NAMED.replace("(%i:", 'in_shardings=[<@m, [{"x"}]>, <@m, [{?}]>] out_shardings=[<@m, [{"y"}]>] (%i:')
MANUAL = """%0 = sdy.manual_computation(%a, %b) in_shardings=[<@m, [{"x", "y"}]>, <@m, [{"y", ?}]>]
    out_shardings=[<@m, [{"x"}]>] manual_axes={"x"} (%i: tensor<4xf32>, %j: tensor<8xf32>) {
  sdy.return %i : tensor<4xf32>
} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>"""
ASYNC = f"""%s = "stablehlo.async_start"(%a) ({{
^bb0(%i: {T}):
  %k = "stablehlo.all_gather"(%i) {{all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>}} : ({T}) -> {T}
  stablehlo.return %k : {T}
}}) : ({T}) -> !stablehlo.future<{T}>"""

DATA_FLOW_OPS = {
    "stablehlo.while": WHILE,
    "stablehlo.case": CASE,
    "stablehlo.if": IF,
    "stablehlo.optimization_barrier": BARRIER,
    "sdy.named_computation": NAMED,
    "sdy.manual_computation": MANUAL,
}


def program(body: str, *, edges: bool = False) -> Op:
    """The main function of a program with this body; `edges` adds all data-flow edges."""
    module = Module.parse(f"{MESHES}func.func @main({ARGS}) {{\n{body}\n  return\n}}")
    if edges:
        module = run_pipeline(module, "sdy-add-data-flow-edges")
    return find(module.copy_root(), "func.func")


def label(value: Value) -> str:
    """What to call a value: `a` for an argument of the function, `while#1` for a result, `while.0.1` for argument 1 of
    region 0.
    """
    op = value.defining_op
    if op is not None:
        return f"{_short(op)}#{value.index}"
    parent = value.block.parent_op
    if parent.name == "func.func":
        return "abnp"[value.index]
    region = next(number for number, region in enumerate(parent.regions) if value.block in region.blocks)
    return f"{_short(parent)}.{region}.{value.index}"


def use_label(use: Use) -> str:
    """What to call a use: op and operand, `while.1.return:0` for a return in region 1."""
    op, index = use
    if not op.is_terminator or op.name == "func.return":
        return f"{_short(op)}:{index}"
    parent = op.parent_op
    assert parent is not None
    region = next(number for number, region in enumerate(parent.regions) if op.block in region.blocks)
    return f"{_short(parent)}.{region}.return:{index}"


def _short(op: Op) -> str:
    return op.name.partition(".")[2]
