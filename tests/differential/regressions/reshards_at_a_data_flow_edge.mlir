// The result of a named computation is resharded to what the computation says, not to what an edge op on it says.
// PASSES: sdy-insert-explicit-reshards{enable-full-version=true}
sdy.mesh @m = <["a"=2, "b"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"b"}]>}) -> tensor<8xf32> {
  %0 = sdy.named_computation<"f">(%a) in_shardings=[<@m, [{"b"}]>] (%x: tensor<8xf32>) {
    %2 = stablehlo.sine %x {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"b"}]>]>} : tensor<8xf32>
    sdy.return %2 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %1 = sdy.data_flow_edge %0 sharding=<@m, [{"b"}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}
