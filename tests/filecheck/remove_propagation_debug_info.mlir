// RUN: sdy_opt %s -sdy-remove-propagation-debug-info | FileCheck %s

sdy.mesh @mesh = <["a"=2, "b"=2]>

// Six attributes go, from ops and from arguments and results of functions, but not from functions; names of origins stay.
// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> (tensor<8xf32> {jax.result_info = "kept"}) attributes {sdy.sharding_origins = {a = "kept"}}
// CHECK-NEXT: %0 = stablehlo.sine %arg0 {note = 1 : i32}
// CHECK-NEXT: %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}]> {sdy.sharding_origin_name = "constraint_0"}
// CHECK-NEXT: %2 = stablehlo.optimization_barrier %1
// CHECK-NEXT: return %2
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>, sdy.sharding_origins = {a = "self"}}) -> (tensor<8xf32> {jax.result_info = "kept", sdy.sharding_origins = {a = "input: 0"}}) attributes {sdy.sharding_origins = {a = "kept"}} {
  %0 = stablehlo.sine %arg0 {note = 1 : i32, sdy.propagation_edges = #sdy.propagation_edges<[{step-1 = [{"a" = operand-0 -> [result-0]}]}]>, sdy.sharding_origins = [{a = "input: 0"}]} : tensor<8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}]> {sdy.sharding_origin_name = "constraint_0", sdy.sharding_origins = {a = "self"}} : tensor<8xf32>
  %2 = stablehlo.optimization_barrier {sdy.block_arg_propagation_edges = [], sdy.block_arg_sharding_origins = [], sdy.result_propagation_edges = [#sdy.propagation_edges<[{step-1 = [{"a" = operand-0 -> [result-0]}]}]>], sdy.result_sharding_origins = [{a = "input: 0"}]} %1 : tensor<8xf32>
  return %2 : tensor<8xf32>
}
