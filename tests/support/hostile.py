"""A program whose names contain markup, scripts and links."""

from __future__ import annotations

import json

HOSTILE = (
    "</script><script>window.stolen=1</script>",
    "<img src=x onerror=window.stolen=1>",
    "\"'><svg onload=window.stolen=1>",
    "javascript:window.stolen=1//",
    "<!--<script>`${window.stolen=1}`",
    "\ue000v0\ue001 __proto__ constructor {{7*7}} {% raw %}",
)
"""Names of inputs, files, scopes and axes."""


def hostile_program() -> str:
    """Two products on a mesh whose axes, inputs, scopes and files have such names."""
    names = [json.dumps(text, ensure_ascii=False) for text in HOSTILE]
    axes = f"{names[0]}=2, {names[1]}=2"
    x = f"#sdy.sharding<@mesh, [{{{names[0]}}}, {{}}]>"
    w = f"#sdy.sharding<@mesh, [{{{names[0]}}}, {{{names[1]}}}]>"
    place = f"loc({names[4]}({names[5]}({names[3]}:3:1)))"
    return f"""
sdy.mesh @mesh = <[{axes}]>
func.func @main(%x: tensor<8x8xf32> {{sdy.sharding = {x}}} loc({names[1]}), %w: tensor<8x8xf32> {{sdy.sharding = {w}}} loc({names[2]}))
    -> (tensor<8x8xf32> {{jax.result_info = {names[0]}}}) {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> {place}
  %1 = stablehlo.tanh %0 : tensor<8x8xf32> {place}
  return %1 : tensor<8x8xf32>
}}"""
