"""HLO for tests: as XLA dumps it, annotated in three ways, and a dump made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

BODY = """

ENTRY %main.1 (x.1: f32[8,16], w.1: f32[16,4]) -> f32[8,4] {
  %x.1 = f32[8,16]{1,0} parameter(0)SHARDING, metadata={op_name="x"}
  %w.1 = f32[16,4]{1,0} parameter(1), metadata={op_name="params[\\'w\\']"}
  %dot.1 = f32[8,4]{1,0} dot(%x.1, %w.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/dot" source_file="f.py" source_line=7}
  ROOT %tanh.1 = f32[8,4]{1,0} tanh(%dot.1), metadata={op_name="jit(f)/tanh"}
}
"""
HEAD = "HloModule jit_f, entry_computation_layout={(f32[8,16]{1,0}, f32[16,4]{1,0})->f32[8,4]{1,0}}"
GSPMD = HEAD + "\n" + BODY.replace("SHARDING", ", sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}")
NAMED = HEAD + "\n" + BODY.replace("SHARDING", ", sharding={mesh['data'=4,'model'=2], [{'data'}, {}]}")
FRONTEND = (
    HEAD
    + ', frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["data"=4, "model"=2]>}}\n'
    + BODY.replace(
        "SHARDING",
        ', sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}, frontend_attributes={xla.sdy.sharding="#sdy.sharding'
        '<@mesh, [{\\"data\\"}, {}]>"}',
    )
)
PLAIN = HEAD + "\n" + BODY.replace("SHARDING", "")

INPUT = """
module @jit_f attributes {mhlo.cross_program_prefetches = []} {
  func.func @main(%arg0: tensor<8x16xf32> {mhlo.sharding = "{mesh['data'=4,'model'=2], [{'data'}, {}]}"},
                  %arg1: tensor<16x4xf32>) -> tensor<8x4xf32> {
    %0 = stablehlo.dot %arg0, %arg1 : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    %1 = stablehlo.tanh %0 : tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}"""
DECIDED = """
module @jit_f attributes {mhlo.cross_program_prefetches = []} {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                  %arg1: tensor<16x4xf32>) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) {
    %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>]>}
        : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    %1 = stablehlo.tanh %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>]>} : tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}"""


def write_dump(directory: Path, name: str = "module_0000.jit_f", **files: str) -> Path:
    """A directory as XLA dumps it; without names of files all kinds of them, with this content otherwise."""
    contents: dict[str, Any] = files or {"input": INPUT, "decided": DECIDED, "hlo": NAMED, "mlir": INPUT}
    places = {
        "input": directory / "shardy" / name / "00.input_module.mlir",
        "decided": directory / "shardy" / name / "02.after_propagation.mlir",
        "output": directory / "shardy" / name / "04.output_module.mlir",
        "hlo": directory / f"{name}.before_optimizations.txt",
        "mlir": directory / name / "module.mlir",
    }
    for kind, content in contents.items():
        places[kind].parent.mkdir(parents=True, exist_ok=True)
        places[kind].write_text(content)
    return directory
