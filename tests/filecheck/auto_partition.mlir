// RUN: sdy_opt %s -pyshardy-auto-partition='hardware=h100 memory-gib=80 candidates=50 budget-s=60 seed=1' | FileCheck %s

sdy.mesh @mesh = <["data"=4, "model"=2]>

// Either side of the product may be split without communication; split by columns, parts of the bias are read alone.
// CHECK-LABEL: func @main
// CHECK-SAME: %arg0: tensor<1024x256xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}
// CHECK-SAME: %arg1: tensor<256x1024xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data", "model"}]>}
// CHECK-SAME: %arg2: tensor<1024xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}
func.func @main(
    %x: tensor<1024x256xbf16>, %w: tensor<256x1024xbf16>,
    %b: tensor<1024xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> tensor<1024x1024xbf16> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<1024x256xbf16>, tensor<256x1024xbf16>) -> tensor<1024x1024xbf16>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<1024xbf16>) -> tensor<1024x1024xbf16>
  %2 = stablehlo.add %0, %1 : tensor<1024x1024xbf16>
  return %2 : tensor<1024x1024xbf16>
}
