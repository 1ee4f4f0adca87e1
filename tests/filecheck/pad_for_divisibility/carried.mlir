// RUN: sdy_opt %s -split-input-file -sdy-pad-for-divisibility | FileCheck %s

// NEWER: the pass did something else
// Ops that hand a value on are padded if that is; nothing else needs these ones padded.
sdy.mesh @mesh = <["x"=2, "y"=4]>
// CHECK-LABEL: func.func @handed_on(
// CHECK: sdy.reshard %arg0 <@mesh, [{"x"}]> : tensor<7xf32>
// CHECK-NEXT: sdy.sharding_constraint {{.*}} <@mesh, [{"y"}]> : tensor<7xf32>
// CHECK-NEXT: sdy.propagation_barrier {{.*}} : tensor<7xf32>
// CHECK-NEXT: chlo.erf {{.*}} : tensor<7xf32> -> tensor<7xf32>
// CHECK-NEXT: sdy.reshard {{.*}} <@mesh, [{}]> : tensor<7xf32>
// CHECK-NEXT: stablehlo.negate {{.*}} : tensor<7xf32>
func.func @handed_on(%a: tensor<7xf32>) -> tensor<7xf32> {
  %0 = sdy.reshard %a <@mesh, [{"x"}]> : tensor<7xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"y"}]> : tensor<7xf32>
  %2 = sdy.propagation_barrier %1 allowed_direction=NONE {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<7xf32>
  %3 = chlo.erf %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<7xf32> -> tensor<7xf32>
  %4 = sdy.reshard %3 <@mesh, [{}]> : tensor<7xf32>
  %5 = stablehlo.negate %4 : tensor<7xf32>
  return %5 : tensor<7xf32>
}

// -----

// NEWER: the pass did something else
// DIFFERS: the reference does not pad them, and refuses what it has padded in front of them.
sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @handed_on_padded(
// CHECK: sdy.reshard {{.*}} <@mesh, [{"x"}]> : tensor<8xf32>
// CHECK-NEXT: sdy.propagation_barrier {{.*}} : tensor<8xf32>
// CHECK-NEXT: chlo.erf {{.*}} : tensor<8xf32> -> tensor<8xf32>
// CHECK-NEXT: sdy.all_gather {{.*}} : tensor<8xf32>
// CHECK-NEXT: stablehlo.slice {{.*}} -> tensor<7xf32>
func.func @handed_on_padded(%a: tensor<7xf32>) -> tensor<7xf32> {
  %0 = sdy.all_slice [{"x"}] %a out_sharding=<@mesh, [{"x"}]> : tensor<7xf32>
  %1 = sdy.reshard %0 <@mesh, [{"x"}]> : tensor<7xf32>
  %2 = sdy.propagation_barrier %1 allowed_direction=NONE {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<7xf32>
  %3 = chlo.erf %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<7xf32> -> tensor<7xf32>
  %4 = sdy.all_gather [{"x"}] %3 out_sharding=<@mesh, [{}]> : tensor<7xf32>
  return %4 : tensor<7xf32>
}

// -----

// NEWER: the pass did something else
// A manual or named computation is padded where what goes in and out is.
sdy.mesh @mesh = <["x"=2, "y"=4]>
// CHECK-LABEL: func.func @computations(
// CHECK: sdy.manual_computation(%arg0) {{.*}} (%arg1: tensor<4x7xf32>)
// CHECK: sdy.all_slice {{.*}} : tensor<4x8xf32>
// CHECK: : (tensor<8x7xf32>) -> tensor<8x7xf32>
// CHECK-NEXT: sdy.named_computation<"f">{{.*}} (%arg1: tensor<8x7xf32>)
// CHECK: : (tensor<8x7xf32>) -> tensor<8x7xf32>
func.func @computations(%a: tensor<8x7xf32>) {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"x"}, {"y"}]>] manual_axes={"x"} (%b: tensor<4x7xf32>) {
    %2 = sdy.constant dense<1.0> : tensor<4x7xf32>
    %3 = sdy.all_slice [{}, {"y"}] %2 out_sharding=<@mesh, [{}, {"y"}]> : tensor<4x7xf32>
    sdy.return %2 : tensor<4x7xf32>
  } : (tensor<8x7xf32>) -> tensor<8x7xf32>
  %1 = sdy.named_computation<"f">(%0) in_shardings=[<@mesh, [{}, {"y"}]>] out_shardings=[<@mesh, [{}, {"y"}]>] (%b: tensor<8x7xf32>) {
    sdy.return %b : tensor<8x7xf32>
  } : (tensor<8x7xf32>) -> tensor<8x7xf32>
  return
}

// -----

// NEWER: the pass did something else
// DIFFERS: the reference does not pad them, and refuses what it has padded in front of them.
sdy.mesh @mesh = <["x"=2, "y"=4]>
// CHECK-LABEL: func.func @padded_computations(
// CHECK: sdy.manual_computation({{.*}} (%arg1: tensor<4x8xf32>)
// CHECK: stablehlo.negate {{.*}} : tensor<4x8xf32>
// CHECK: : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT: sdy.named_computation<"f">{{.*}} (%arg1: tensor<8x8xf32>)
// CHECK: : (tensor<8x8xf32>) -> tensor<8x8xf32>
func.func @padded_computations(%a: tensor<8x7xf32>) {
  %0 = sdy.all_slice [{"x"}, {"y"}] %a out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x7xf32>
  %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"x"}, {"y"}]>] manual_axes={"x"} (%b: tensor<4x7xf32>) {
    %3 = stablehlo.negate %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>} : tensor<4x7xf32>
    sdy.return %3 : tensor<4x7xf32>
  } : (tensor<8x7xf32>) -> tensor<8x7xf32>
  %2 = sdy.named_computation<"f">(%1) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"x"}, {"y"}]>] (%b: tensor<8x7xf32>) {
    sdy.return %b : tensor<8x7xf32>
  } : (tensor<8x7xf32>) -> tensor<8x7xf32>
  return
}

// -----

// NEWER: the pass did something else
// A call is padded if its function is, whatever its own sharding says.
sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @calls(
// CHECK: call @unsharded() {{.*}} : () -> tensor<7xf32>
// CHECK: call @sharded() {{.*}} : () -> tensor<8xf32>
// CHECK: return {{.*}} : tensor<7xf32>
func.func @calls() -> tensor<7xf32> {
  %0 = call @unsharded() {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : () -> tensor<7xf32>
  %1 = call @sharded() {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : () -> tensor<7xf32>
  return %0 : tensor<7xf32>
}
func.func private @unsharded() -> tensor<7xf32> {
  %0 = sdy.constant dense<1.0> : tensor<7xf32>
  return %0 : tensor<7xf32>
}
func.func private @sharded() -> (tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<1.0> : tensor<7xf32>
  return %0 : tensor<7xf32>
}

// -----

// NEWER: the pass did something else
// A result sharded in fewer shards than its operand is padded as that is.
sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @fewer_shards(
// CHECK: stablehlo.negate {{.*}}<@mesh, [{}]>{{.*}} : tensor<8xf32>
func.func @fewer_shards(%a: tensor<7xf32>) {
  %0 = sdy.all_slice [{"x"}] %a out_sharding=<@mesh, [{"x"}]> : tensor<7xf32>
  %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : tensor<7xf32>
  return
}
