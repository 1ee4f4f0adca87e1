// RUN: sdy_opt %s -pyshardy-share-reshards | FileCheck %s

// What is resharded alike is resharded once, in loops and branches too; a manual computation sees its own alone.
// CHECK: sdy.mesh @mesh = <["a"=2, "b"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, %arg1: tensor<i1>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{}]> : tensor<8xf32>
// CHECK-NEXT: %1 = sdy.all_gather [{"a"}] %arg0 out_sharding=<@mesh, [{}]> : tensor<8xf32>
// CHECK-NEXT: %2 = "stablehlo.if"(%arg1) ({
// CHECK-NEXT: stablehlo.return %0 : tensor<8xf32>
// CHECK-NEXT: }, {
// CHECK-NEXT: %4 = sdy.reshard %arg0 <@mesh, [{"b"}]> : tensor<8xf32>
// CHECK-NEXT: stablehlo.return %4 : tensor<8xf32>
// CHECK-NEXT: }) : (tensor<i1>) -> tensor<8xf32>
// CHECK-NEXT: %3 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"a"} (%arg2: tensor<8xf32>) {
// CHECK-NEXT: %4 = sdy.reshard %arg2 <@mesh, [{"b"}]> : tensor<8xf32>
// CHECK-NEXT: %5 = stablehlo.add %4, %4 : tensor<8xf32>
// CHECK-NEXT: sdy.return %5 : tensor<8xf32>
// CHECK-NEXT: } : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: return %1, %1, %3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, %arg1: tensor<i1>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = sdy.reshard %arg0 <@mesh, [{}]> : tensor<8xf32>
  %1 = sdy.all_gather [{"a"}] %arg0 out_sharding=<@mesh, [{}]> : tensor<8xf32>
  %2 = "stablehlo.if"(%arg1) ({
    %4 = sdy.reshard %arg0 <@mesh, [{}]> : tensor<8xf32>
    stablehlo.return %4 : tensor<8xf32>
  }, {
    %4 = sdy.reshard %arg0 <@mesh, [{"b"}]> : tensor<8xf32>
    stablehlo.return %4 : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32>
  %3 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"a"} (%arg2: tensor<8xf32>) {
    %4 = sdy.reshard %arg2 <@mesh, [{"b"}]> : tensor<8xf32>
    %5 = sdy.reshard %arg2 <@mesh, [{"b"}]> : tensor<8xf32>
    %6 = stablehlo.add %4, %5 : tensor<8xf32>
    sdy.return %6 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %4 = sdy.all_gather [{"a"}] %arg0 out_sharding=<@mesh, [{}]> : tensor<8xf32>
  return %1, %4, %3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
