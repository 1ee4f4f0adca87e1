// RUN: sdy_opt %s -split-input-file -verify-diagnostics -sdy-inline-meshes

// NEWER: before, replica groups kept the symbol
// DIFFERS: the reference makes an attribute that cannot be read
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @unknown_axis(%arg0: tensor<8xf32>) -> tensor<16xf32> {
  // expected-error@+1 {{cannot be read: axis 'c' not found in mesh definition}}
  %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "c">]>}> : (tensor<8xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// -----

// NEWER: before, replica groups kept the symbol
// DIFFERS: the reference makes an attribute that cannot be read
sdy.mesh @device = <[], device_ids=[3]>
func.func @no_axes(%arg0: tensor<8xf32>) -> tensor<16xf32> {
  // expected-error@+1 {{has groups of devices on the mesh @device, which has no axes, as StableHLO's have}}
  %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @device, axes = []>}> : (tensor<8xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
