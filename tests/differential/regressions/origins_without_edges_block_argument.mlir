// A constraint on a block argument without data-flow edge leaves empty origins on the results of the manual computation.
// PASSES: sdy-basic-propagate{debug-sharding-origins=true}
sdy.mesh @m = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@m, [{"a"}]>] out_shardings=[<@m, [{}]>] manual_axes={} (%y: tensor<8xf32>) {
    %1 = sdy.sharding_constraint %y <@m, [{"b"}]> : tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
