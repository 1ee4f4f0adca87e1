// RUN: sdy_opt %s -split-input-file -pyshardy-import-hlo-shardings | FileCheck %s

// Tilings on the mesh that they have in common: of 4 and of 2, because the second argument is split along the second
// of these. The device lists say the same as the transposed order. A call keeps nothing, an add its sharding.
// CHECK: func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["axis_0"=4, "axis_1"=2]>, [{"axis_0"}, {}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["axis_0"=4, "axis_1"=2]>, [{}, {"axis_1"}]>}, %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["axis_0"=4, "axis_1"=2]>, [{}, {"axis_1"}]>}, %arg3: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["axis_0"=4, "axis_1"=2]>, [{}, {}]>}, %arg4: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<[], device_ids=[3]>, []>}, %arg5: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["axis_0"=4, "axis_1"=2]>, [{"axis_1"}, {"axis_0"}]>}, tensor<8x8xf32>) {
// CHECK-NEXT: %0 = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<mesh<["axis_0"=4, "axis_1"=2]>, [{"axis_0", "axis_1"}, {}]>]>} : tensor<8x8xf32>
// CHECK-NEXT: %1 = stablehlo.custom_call @Sharding(%0) {backend_config = "unspecified_dims=[1]", sdy.sharding = #sdy.sharding_per_value<[<mesh<["axis_0"=4, "axis_1"=2]>, [{"axis_0"}, {?}], unreduced={"axis_1"}>]>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT: return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
// CHECK-NEXT: }
func.func @main(%a: tensor<8x8xf32> {mhlo.sharding = "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"},
                %b: tensor<8x8xf32> {mhlo.sharding = "{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}"},
                %c: tensor<8x8xf32> {mhlo.sharding = "{devices=[1,2,4]0,2,4,6,1,3,5,7 last_tile_dims={replicated}}"},
                %d: tensor<8x8xf32> {mhlo.sharding = "{replicated}"}, %e: tensor<8x8xf32> {mhlo.sharding = "{maximal device=3}"},
                %f: tensor<8x8xf32> {mhlo.sharding = "{unknown}"})
    -> (tensor<8x8xf32> {mhlo.sharding = "{devices=[2,4]<=[4,2]T(1,0)}"}, tensor<8x8xf32>) {
  %0 = stablehlo.add %a, %b {mhlo.sharding = "{devices=[8,1]<=[8]}"} : tensor<8x8xf32>
  %1 = stablehlo.custom_call @Sharding(%0) {backend_config = "unspecified_dims=[1]", mhlo.sharding = "{devices=[4,1,2]<=[8] last_tile_dims={unreduced} metadata={op_name=\22}\22}}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// Named axes. A mesh-less {replicated} says nothing here, and an add keeps nothing.
// CHECK: func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=4, "y"=2]>, [{"x":(2)2}, {"x":(1)2, ?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["z"=2], device_ids=[1, 0]>, [{?}, {}], replicated={"z"}>}, %arg2: tensor<f32> {sdy.sharding = #sdy.sharding<mesh<[]>, []>}, %arg3: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=4, "y"=2]>, [{}, {}]>}, tensor<8x8xf32>) {
// CHECK-NEXT: %0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>
// CHECK-NEXT: %1 = stablehlo.custom_call @Sharding(%0) {sdy.sharding = #sdy.sharding_per_value<[<mesh<["x"=4, "y"=2]>, [{"x"}, {}], unreduced={"y"}>]>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT: stablehlo.custom_call @xla_python_cpu_callback(%arg2) {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<mesh<[], device_ids=[0]>, []>]>} : (tensor<f32>) -> ()
// CHECK-NEXT: %2:2 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%arg0, %arg1) {mhlo.frontend_attributes = {xla.sdy.manual_axes = "#sdy<manual_axes{\22x\22}>"}, sdy.sharding = #sdy.sharding_per_value<[<mesh<["x"=4, "y"=2]>, [{?}, {?}]>, <mesh<["x"=4, "y"=2]>, [{?}, {?}]>]>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
// CHECK-NEXT: return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
// CHECK-NEXT: }
func.func @main(%a: tensor<8x8xf32> {mhlo.sharding = "{mesh['x'=4,'y'=2], [{'x':(2)2}, {'x':(1)2, ?}]}"},
                %b: tensor<8x8xf32> {mhlo.sharding = "{mesh['z'=2], device_ids=(1,0), [{?}, {}], replicated={'z'}}"},
                %c: tensor<f32> {mhlo.sharding = "{mesh[], replicated}"},
                %d: tensor<8x8xf32> {mhlo.sharding = "{replicated}"})
    -> (tensor<8x8xf32> {mhlo.sharding = "{mesh['x'=4,'y'=2], replicated}"}, tensor<8x8xf32> {mhlo.sharding = "{replicated}"}) {
  %0 = stablehlo.add %a, %b {mhlo.sharding = "{mesh['x'=4,'y'=2], [{'x'}, {}]}"} : tensor<8x8xf32>
  %1 = stablehlo.custom_call @Sharding(%0) {mhlo.sharding = "{mesh['x'=4,'y'=2], [{'x'}, {}], unreduced={'y'}}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  stablehlo.custom_call @xla_python_cpu_callback(%c) {has_side_effect = true, mhlo.sharding = "{single_device[device_id=0]}"} : (tensor<f32>) -> ()
  %2:2 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%a, %b) {mhlo.sharding = "{{mesh['x'=4,'y'=2], [{?}, {?}], manual={'x'}}, /*index=1*/{mesh['x'=4,'y'=2], [{?}, {?}], manual={'x'}}}"} : (tensor<8x8xf32>, tensor<8x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// Manual subgroups.
// CHECK: func.func @main(%arg0: tensor<8x8xf32>) -> (tensor<2x8xf32>, tensor<8x8xf32>) {
// CHECK-NEXT: %0 = stablehlo.custom_call @SPMDFullToShardShape(%arg0) {mhlo.frontend_attributes = {xla.sdy.manual_axes = "#sdy<manual_axes{\22axis_0\22}>"}, sdy.sharding = #sdy.sharding_per_value<[<mesh<["axis_0"=4, "axis_1"=2]>, [{}, {}]>]>} : (tensor<8x8xf32>) -> tensor<2x8xf32>
// CHECK-NEXT: %1 = stablehlo.custom_call @Sharding(%0) {mhlo.frontend_attributes = {xla.sdy.manual_axes = "#sdy<manual_axes{\22axis_0\22, \22axis_1\22}>"}} : (tensor<2x8xf32>) -> tensor<2x8xf32>
// CHECK-NEXT: %2 = stablehlo.custom_call @SPMDShardToFullShape(%1) {sdy.sharding = #sdy.sharding_per_value<[<mesh<["axis_0"=4, "axis_1"=2]>, [{"axis_0"}, {}]>]>} : (tensor<2x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT: return %1, %2 : tensor<2x8xf32>, tensor<8x8xf32>
// CHECK-NEXT: }
func.func @main(%a: tensor<8x8xf32>) -> (tensor<2x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.custom_call @SPMDFullToShardShape(%a) {mhlo.sharding = "{devices=[1,1,4,2]<=[8] last_tile_dims={manual, replicated}}"} : (tensor<8x8xf32>) -> tensor<2x8xf32>
  %1 = stablehlo.custom_call @Sharding(%0) {mhlo.sharding = "{manual}"} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %2 = stablehlo.custom_call @SPMDShardToFullShape(%1) {mhlo.sharding = "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"} : (tensor<2x8xf32>) -> tensor<8x8xf32>
  return %1, %2 : tensor<2x8xf32>, tensor<8x8xf32>
}
