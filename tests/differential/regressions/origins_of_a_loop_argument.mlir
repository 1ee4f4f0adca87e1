// A constraint on a block argument of a loop without data-flow edges names the result of the loop; a returned value without origins writes none.
// PASSES: sdy-basic-propagate{debug-sharding-origins=true}
sdy.mesh @m = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8xf32>, %i: tensor<i32>) -> (tensor<8xf32>, tensor<i32>) {
  %0:2 = stablehlo.while(%n = %i, %y = %x) : tensor<i32>, tensor<8xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@m, []>, <@m, [{"a"}]>]>}
  cond {
    %p = stablehlo.compare LT, %n, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %1 = sdy.sharding_constraint %y <@m, [{"a"}]> : tensor<8xf32>
    stablehlo.return %n, %1 : tensor<i32>, tensor<8xf32>
  }
  return %0#1, %0#0 : tensor<8xf32>, tensor<i32>
}
