// RUN: sdy_opt %s -verify-diagnostics -sdy-user-priority-propagate

// An edge of a manual computation forgets what is kept back for a later round; an axis may then be used twice.
sdy.mesh @mesh = <["p"=2, "q"=2, "r"=2]>
func.func @twice(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"r", ?}]>}) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"p", "q", ?}p1, {?}]>] out_shardings=[<@mesh, [{"p", ?}, {?}]>] manual_axes={"p"} (%arg1: tensor<4x8xf32>) {
    // expected-error@+1 {{gets an invalid sharding: sharding a tensor: got axis "q" twice}}
    %2 = sdy.data_flow_edge %arg1 sharding=<@mesh, [{"q", ?}p1, {?}]> : tensor<4x8xf32>
    %3 = stablehlo.sine %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"r", "q", ?}]>]>} : tensor<4x8xf32>
    sdy.return %3 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"p", ?}, {?}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
