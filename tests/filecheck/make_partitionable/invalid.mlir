// RUN: sdy_opt %s -split-input-file -verify-diagnostics -pyshardy-make-partitionable

sdy.mesh @mesh = <["x"=2]>
func.func @gathered(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x2xf32> {
  // expected-warning@+1 {{'chlo.top_k' cannot run on shards and runs on whole tensors instead: every device holds 128 B more than its share}}
  %values, %indices = chlo.top_k(%a, k = 2) : tensor<8x8xf32> -> (tensor<8x2xf32>, tensor<8x2xi32>)
  return %values : tensor<8x2xf32>
}

// -----

func.func @for_xla(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{calls @CustomSPMDPartitioning, a custom partitioner in Python; load the function, not its text}}
  %0 = stablehlo.custom_call @CustomSPMDPartitioning(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @manual(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
    // expected-error@+1 {{calls @CustomSPMDPartitioning inside a manual computation, where XLA alone can ask the partitioner; run the program with engine="xla"}}
    %1 = stablehlo.custom_call @CustomSPMDPartitioning(%b) : (tensor<4xf32>) -> tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
