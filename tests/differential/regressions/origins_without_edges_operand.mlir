// A manual computation without data-flow edges is not the origin of the sharding of its operand.
// PASSES: sdy-basic-propagate{debug-sharding-origins=true}
sdy.mesh @m = <["a"=2, "b"=2]>
func.func @main(%v: tensor<8xf32>) -> tensor<8xf32> {
  %x = stablehlo.sine %v {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"b"}]>]>} : tensor<8xf32>
  %0 = sdy.manual_computation(%x) in_shardings=[<@m, [{"a"}]>] out_shardings=[<@m, [{}]>] manual_axes={} (%y: tensor<8xf32>) {
    %1 = stablehlo.sine %y : tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
