// Groups are axes only where that says the same whatever reads them: not where the devices of the mesh are reordered.
// RUN: sdy_opt %s -split-input-file -sdy-convert-global-to-local='enable-rgv3=true rgv3-where-same=true' 2>&1 | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=2]>
// CHECK: replica_groups = #stablehlo.replica_group_mesh_axes
func.func @ordered(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = sdy.all_gather [{"y"}] %a out_sharding=<@mesh, [{"x"}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>
// CHECK: replica_groups = dense<{{\[\[}}3, 2], [1, 0]]> : tensor<2x2xi64>
func.func @reordered(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = sdy.all_gather [{"y"}] %a out_sharding=<@mesh, [{"x"}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}
