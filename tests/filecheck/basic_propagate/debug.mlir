// RUN: sdy_opt %s -split-input-file -sdy-basic-propagate='debug-sharding-origins=true debug-propagation-edge-sharding=true' | FileCheck %s
// RUN: sdy_opt %s -split-input-file -sdy-aggressive-propagate='debug-sharding-origins=true debug-propagation-edge-sharding=true' | FileCheck %s
// RUN: sdy_opt %s -split-input-file -sdy-basic-propagate='debug-sharding-origins=true' | FileCheck %s --check-prefix=ORIGINS
// RUN: sdy_opt %s -split-input-file -sdy-basic-propagate='debug-propagation-edge-sharding=true' | FileCheck %s --check-prefix=EDGES

// Arguments, results, ops and constraints say where their axes come from; an annotation of their own is "self". What is
// returned twice says so on the last result; all edges of results stand on the first.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {"q", ?}]>, sdy.sharding_origins = {p = "self", q = "output: 2"}}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>, sdy.sharding_origins = {p = "input: 0", q = "output: 2"}}) -> (tensor<8x8xf32> {sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"q" = result-0 -> [operand-0]}]}, {step-6 = [{"p" = operand-0 -> [result-0]}, {"q" = operand-0 -> [result-0]}]}]>, sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>, sdy.sharding_origins = {p = "input: 0", q = "output: 2"}}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q"}]>, sdy.sharding_origins = {p = "input: 0", q = "self"}})
// CHECK: %0 = stablehlo.sine %arg0 {sdy.propagation_edges = #sdy.propagation_edges<[{step-1 = [{"p" = operand-0 -> [result-0]}]}, {step-5 = [{"q" = result-0 -> [operand-0]}]}]>, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {"q", ?}]>]>, sdy.sharding_origins = [{p = "input: 0", q = "output: 2"}]}
// CHECK: %1 = stablehlo.add %arg1, %0 {sdy.propagation_edges = #sdy.propagation_edges<[{step-2 = [{"p" = operand-1 -> [operand-0, result-0]}]}, {step-4 = [{"q" = result-0 -> [operand-0, operand-1]}]}]>, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {"q", ?}]>]>, sdy.sharding_origins = [{p = "input: 0", q = "output: 2"}]}
// CHECK: %2 = sdy.sharding_constraint %1 <@mesh, [{"p", ?}, {"q", ?}]> {sdy.propagation_edges = #sdy.propagation_edges<[{step-3 = [{"p" = operand-0 -> [result-0]}, {"q" = result-0 -> [operand-0]}]}]>, sdy.sharding_origin_name = "constraint_0", sdy.sharding_origins = {p = "input: 0", q = "output: 2"}}
// CHECK: return %0, %0, %2
// ORIGINS-LABEL: func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {"q", ?}]>, sdy.sharding_origins = {p = "self", q = "output: 2"}}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>, sdy.sharding_origins = {p = "input: 0", q = "output: 2"}}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>, sdy.sharding_origins = {p = "input: 0", q = "output: 2"}}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q"}]>, sdy.sharding_origins = {p = "input: 0", q = "self"}})
// ORIGINS: %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {"q", ?}]>]>, sdy.sharding_origins = [{p = "input: 0", q = "output: 2"}]}
// ORIGINS: %1 = stablehlo.add %arg1, %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {"q", ?}]>]>, sdy.sharding_origins = [{p = "input: 0", q = "output: 2"}]}
// ORIGINS: %2 = sdy.sharding_constraint %1 <@mesh, [{"p", ?}, {"q", ?}]> {sdy.sharding_origin_name = "constraint_0", sdy.sharding_origins = {p = "input: 0", q = "output: 2"}}
// ORIGINS: return %0, %0, %2
// EDGES-LABEL: func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {"q", ?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>}) -> (tensor<8x8xf32> {sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"q" = result-0 -> [operand-0]}]}, {step-6 = [{"p" = operand-0 -> [result-0]}, {"q" = operand-0 -> [result-0]}]}]>, sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q"}]>})
// EDGES: %0 = stablehlo.sine %arg0 {sdy.propagation_edges = #sdy.propagation_edges<[{step-1 = [{"p" = operand-0 -> [result-0]}]}, {step-5 = [{"q" = result-0 -> [operand-0]}]}]>, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {"q", ?}]>]>}
// EDGES: %1 = stablehlo.add %arg1, %0 {sdy.propagation_edges = #sdy.propagation_edges<[{step-2 = [{"p" = operand-1 -> [operand-0, result-0]}]}, {step-4 = [{"q" = result-0 -> [operand-0, operand-1]}]}]>, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {"q", ?}]>]>}
// EDGES: %2 = sdy.sharding_constraint %1 <@mesh, [{"p", ?}, {"q", ?}]> {sdy.propagation_edges = #sdy.propagation_edges<[{step-3 = [{"p" = operand-0 -> [result-0]}, {"q" = result-0 -> [operand-0]}]}]>}
// EDGES: return %0, %0, %2
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {?}]>}, %arg1: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"q"}]>}) {
  %0 = stablehlo.sine %arg0 : tensor<8x8xf32>
  %1 = stablehlo.add %arg1, %0 : tensor<8x8xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{?}, {?}]> : tensor<8x8xf32>
  return %0, %0, %2 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// Steps go on from those that the module brings.
sdy.mesh @mesh = <["p"=4]>
// CHECK-LABEL: func.func @more(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>, sdy.sharding_origins = {p = "self"}}) -> (tensor<2x4xf32> {sdy.propagation_edges = #sdy.propagation_edges<[{step-9 = [{"p":(1)2 = operand-0 -> [result-0]}, {"p":(2)2 = operand-0 -> [result-0]}]}]>, sdy.sharding = #sdy.sharding<@mesh, [{"p":(1)2, ?}, {"p":(2)2, ?}]>, sdy.sharding_origins = {"p:(1)2" = "input: 0", "p:(2)2" = "input: 0"}})
// CHECK: %0 = stablehlo.sine %arg0 {sdy.propagation_edges = #sdy.propagation_edges<[{step-7 = [{"p" = operand-0 -> [result-0]}]}]>, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}]>]>, sdy.sharding_origins = [{p = "input: 0"}]}
// CHECK: %1 = stablehlo.reshape %0 {sdy.propagation_edges = #sdy.propagation_edges<[{step-8 = [{"p":(1)2 = operand-0 -> [result-0]}, {"p":(2)2 = operand-0 -> [result-0]}]}]>, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p":(1)2, ?}, {"p":(2)2, ?}]>]>, sdy.sharding_origins = [{"p:(1)2" = "input: 0", "p:(2)2" = "input: 0"}]}
// CHECK: return %1
// ORIGINS-LABEL: func.func @more(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>, sdy.sharding_origins = {p = "self"}}) -> (tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p":(1)2, ?}, {"p":(2)2, ?}]>, sdy.sharding_origins = {"p:(1)2" = "input: 0", "p:(2)2" = "input: 0"}})
// ORIGINS: %0 = stablehlo.sine %arg0 {sdy.propagation_edges = #sdy.propagation_edges<[{step-6 = [{"p" = operand-0 -> [result-0]}]}]>, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}]>]>, sdy.sharding_origins = [{p = "input: 0"}]}
// ORIGINS: %1 = stablehlo.reshape %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p":(1)2, ?}, {"p":(2)2, ?}]>]>, sdy.sharding_origins = [{"p:(1)2" = "input: 0", "p:(2)2" = "input: 0"}]}
// ORIGINS: return %1
// EDGES-LABEL: func.func @more(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>}) -> (tensor<2x4xf32> {sdy.propagation_edges = #sdy.propagation_edges<[{step-9 = [{"p":(1)2 = operand-0 -> [result-0]}, {"p":(2)2 = operand-0 -> [result-0]}]}]>, sdy.sharding = #sdy.sharding<@mesh, [{"p":(1)2, ?}, {"p":(2)2, ?}]>})
// EDGES: %0 = stablehlo.sine %arg0 {sdy.propagation_edges = #sdy.propagation_edges<[{step-7 = [{"p" = operand-0 -> [result-0]}]}]>, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}]>]>}
// EDGES: %1 = stablehlo.reshape %0 {sdy.propagation_edges = #sdy.propagation_edges<[{step-8 = [{"p":(1)2 = operand-0 -> [result-0]}, {"p":(2)2 = operand-0 -> [result-0]}]}]>, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p":(1)2, ?}, {"p":(2)2, ?}]>]>}
// EDGES: return %1
func.func @more(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>}) -> tensor<2x4xf32> {
  %0 = stablehlo.sine %arg0 {sdy.propagation_edges = #sdy.propagation_edges<[{step-6 = [{"p" = operand-0 -> [result-0]}]}]>} : tensor<8xf32>
  %1 = stablehlo.reshape %0 : (tensor<8xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// -----

// Manual computations are named by their inputs and outputs.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @manual(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>, sdy.sharding_origins = {p = "mc_0_input: 0", q = "mc_0_output: 0"}}) -> (tensor<8x8xf32> {sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"p" = operand-0 -> [result-0]}, {"q" = operand-0 -> [result-0]}]}]>, sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>, sdy.sharding_origins = {p = "mc_0_output: 0", q = "mc_0_output: 0"}})
// CHECK: %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"p"}, {?}]>] out_shardings=[<@mesh, [{"p"}, {"q", ?}]>] manual_axes={"p"} (%arg1: tensor<4x8xf32>) {
// CHECK: %2 = sdy.data_flow_edge %arg1 sharding=<@mesh, [{}, {"q", ?}]> {sdy.propagation_edges = #sdy.propagation_edges<[{step-1 = [{"p" = result-0 -> [operand-0]}]}, {step-4 = [{"q" = result-0 -> [operand-0]}]}]>, sdy.sharding_origins = {p = "self", q = "mc_0_output: 0"}}
// CHECK: %3 = stablehlo.sine %2 {sdy.propagation_edges = #sdy.propagation_edges<[{step-3 = [{"q" = result-0 -> [operand-0]}]}]>, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"q", ?}]>]>, sdy.sharding_origins = [{q = "mc_0_output: 0"}]}
// CHECK: sdy.return %3
// CHECK: } {sdy.sharding_origin_name = "mc_0"}
// CHECK: %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"p"}, {"q", ?}]> {sdy.propagation_edges = #sdy.propagation_edges<[{step-2 = [{"q" = result-0 -> [operand-0]}]}]>, sdy.sharding_origins = {p = "self", q = "self"}}
// CHECK: return %1
// ORIGINS-LABEL: func.func @manual(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>, sdy.sharding_origins = {p = "mc_0_input: 0", q = "mc_0_output: 0"}}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>, sdy.sharding_origins = {p = "mc_0_output: 0", q = "mc_0_output: 0"}})
// ORIGINS: %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"p"}, {?}]>] out_shardings=[<@mesh, [{"p"}, {"q", ?}]>] manual_axes={"p"} (%arg1: tensor<4x8xf32>) {
// ORIGINS: %2 = sdy.data_flow_edge %arg1 sharding=<@mesh, [{}, {"q", ?}]> {sdy.sharding_origins = {p = "self", q = "mc_0_output: 0"}}
// ORIGINS: %3 = stablehlo.sine %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"q", ?}]>]>, sdy.sharding_origins = [{q = "mc_0_output: 0"}]}
// ORIGINS: sdy.return %3
// ORIGINS: } {sdy.sharding_origin_name = "mc_0"}
// ORIGINS: %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"p"}, {"q", ?}]> {sdy.sharding_origins = {p = "self", q = "self"}}
// ORIGINS: return %1
// EDGES-LABEL: func.func @manual(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>}) -> (tensor<8x8xf32> {sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"p" = operand-0 -> [result-0]}, {"q" = operand-0 -> [result-0]}]}]>, sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>})
// EDGES: %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"p"}, {?}]>] out_shardings=[<@mesh, [{"p"}, {"q", ?}]>] manual_axes={"p"} (%arg1: tensor<4x8xf32>) {
// EDGES: %2 = sdy.data_flow_edge %arg1 sharding=<@mesh, [{}, {"q", ?}]> {sdy.propagation_edges = #sdy.propagation_edges<[{step-1 = [{"p" = result-0 -> [operand-0]}]}, {step-4 = [{"q" = result-0 -> [operand-0]}]}]>}
// EDGES: %3 = stablehlo.sine %2 {sdy.propagation_edges = #sdy.propagation_edges<[{step-3 = [{"q" = result-0 -> [operand-0]}]}]>, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"q", ?}]>]>}
// EDGES: sdy.return %3
// EDGES: }
// EDGES: %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"p"}, {"q", ?}]> {sdy.propagation_edges = #sdy.propagation_edges<[{step-2 = [{"q" = result-0 -> [operand-0]}]}]>}
// EDGES: return %1
func.func @manual(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"p"}, {?}]>] out_shardings=[<@mesh, [{"p"}, {"q", ?}]>] manual_axes={"p"} (%arg1: tensor<4x8xf32>) {
    %2 = sdy.data_flow_edge %arg1 sharding=<@mesh, [{}, {?}]> : tensor<4x8xf32>
    %3 = stablehlo.sine %2 : tensor<4x8xf32>
    sdy.return %3 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"p"}, {"q", ?}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
