"""Small modules that commands are given."""

from __future__ import annotations

from pathlib import Path

MLP = Path(__file__).parents[3] / "examples" / "mlp.mlir"
MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'
T = "tensor<8x4xf32>"


def on(sharding: str) -> str:
    return f"{{sdy.sharding = #sdy.sharding<{sharding}>}}"


def negate(sharding: str, mesh: str = MESH, type: str = T) -> str:
    """A module whose argument has that sharding."""
    return f"""{mesh}func.func @main(%a: {type} {on(sharding)}) -> {type} {{
  %0 = stablehlo.negate %a : {type}
  return %0 : {type}
}}
"""
