// RUN: sdy_opt %s -split-input-file -verify-diagnostics -pyshardy-make-partitionable

sdy.mesh @mesh = <["a"=2]>
func.func @unknown(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
  // expected-warning@+1 {{cannot run on shards and runs on whole tensors instead: every device holds 32 B more than its share}}
  %0 = stablehlo.custom_call @mine(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @for_xla(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{calls @CustomSPMDPartitioning, whose partitioner XLA alone can ask; run the program with}}
  %0 = stablehlo.custom_call @CustomSPMDPartitioning(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
