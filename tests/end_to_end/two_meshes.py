"""Programs on two meshes of the same devices with other axes: a value that all devices hold whole is on both."""

from __future__ import annotations

_MESHES = {
    "parts": '<["z"=8]>',
    "two": '<["w"=2, "z"=4]>',
    "four": '<["w"=4, "z"=2]>',
    "three": '<["u"=2, "w"=2, "z"=2]>',
    "turned": '<["w"=2, "z"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>',
}
_T = "tensor<16x8xf32>"


def _arg(name: str, mesh: str, sharding: str) -> str:
    return f"%{name}: {_T} {{sdy.sharding = #sdy.sharding<@{mesh}, {sharding}>}}"


_ARGS = ", ".join((_arg("a", "mesh", '[{"z"}, {}]'), _arg("b", "other", "[{}, {}]")))
_BODIES = {
    "multiply": f"  %r = stablehlo.multiply %b, %a : {_T}",
    "constraint": f'  %c = sdy.sharding_constraint %b <@mesh, [{{}}, {{"z"}}]> : {_T}\n  %r = stablehlo.add %c, %b : {_T}',
    "reshard": f'  %c = sdy.reshard %a <@other, [{{}}, {{"y"}}]> : {_T}\n  %r = stablehlo.negate %c : {_T}',
    "dot": f"""  %t = stablehlo.transpose %b, dims = [1, 0] : ({_T}) -> tensor<8x16xf32>
  %d = stablehlo.dot_general %t, %a, contracting_dims = [1] x [0] : (tensor<8x16xf32>, {_T}) -> tensor<8x8xf32>
  %r = stablehlo.dot_general %b, %d, contracting_dims = [1] x [0] : ({_T}, tensor<8x8xf32>) -> {_T}""",
    "concatenate": f"""  %c = stablehlo.concatenate %b, %a, dim = 0 : ({_T}, {_T}) -> tensor<32x8xf32>
  %r = stablehlo.slice %c [8:24, 0:8] : (tensor<32x8xf32>) -> {_T}""",
    "call": f"  %r = call @f(%b, %a) : ({_T}, {_T}) -> {_T}",
    "while": f"""  %n = stablehlo.constant dense<3> : tensor<i32>
  %w:2 = stablehlo.while(%i = %n, %x = %b) : tensor<i32>, {_T} cond {{
    %z = stablehlo.constant dense<0> : tensor<i32>
    %p = stablehlo.compare GT, %i, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.subtract %i, %one : tensor<i32>
    %y = stablehlo.add %x, %a : {_T}
    stablehlo.return %j, %y : tensor<i32>, {_T}
  }}
  %r = stablehlo.negate %w#1 : {_T}""",
}
_FUNCTION = f"""
func.func private @f(%x: {_T}, %y: {_T}) -> {_T} {{
  %0 = stablehlo.add %x, %y : {_T}
  return %0 : {_T}
}}"""


def _program(body: str, mesh: str, result: str) -> str:
    meshes = f'sdy.mesh @other = <["y"=8]>\nsdy.mesh @mesh = {_MESHES[mesh]}\n'
    port = f"{_T} {{sdy.sharding = #sdy.sharding<{result}>}}"
    return f"{meshes}func.func @main({_ARGS}) -> ({port}) {{\n{_BODIES[body]}\n  return %r : {_T}\n}}{_FUNCTION}"


_RESULTS = {"as it comes": "@mesh, [{?}, {?}]", "on the other": '@other, [{"y"}, {}]', "whole": "@other, [{}, {}]"}
PROGRAMS = {
    f"{body} on {mesh}, {result}": _program(body, mesh, _RESULTS[result])
    for number, body in enumerate(_BODIES)
    for place, mesh in enumerate(_MESHES)
    for result in [[*_RESULTS][(number + place) % len(_RESULTS)]]
}
"""By what they do."""
