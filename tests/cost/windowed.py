"""A sum of batched products that XLA for TPUs cuts into parts, or not, by the dimension along which it is scattered."""

from __future__ import annotations

_BATCHED = """
sdy.mesh @mesh = <["data"=8]>
func.func @main(%x: tensor<8x64x8448xbf16> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{}}, {{"data"}}]>}},
                %w: tensor<8x8448x64xbf16> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"data"}}, {{}}]>}})
    -> (tensor<8x64x64xbf16> {{sdy.sharding = #sdy.sharding<@mesh, [{out}]>}}) {{
  %0 = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [1]
    : (tensor<8x64x8448xbf16>, tensor<8x8448x64xbf16>) -> tensor<8x64x64xbf16>
  return %0 : tensor<8x64x64xbf16>
}}"""
BATCHED = [
    (_BATCHED.format(out=out), is_cut)
    for out, is_cut in (('{"data"}, {}, {}', False), ('{}, {"data"}, {}', True), ('{}, {}, {"data"}', True))
]
"""The programs, and whether the sum is cut."""
