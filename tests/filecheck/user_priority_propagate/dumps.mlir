// RUN: rm -rf %t && mkdir -p %t
// RUN: sdy_opt %s -sdy-user-priority-propagate='module-dump-directory=%t' > /dev/null
// RUN: FileCheck %s < %t/00.propagation_after_user_priority_0.mlir
// RUN: ls %t | FileCheck %s --check-prefix=FILES

// The round of priority 1 is the last, and is not written.
// FILES: 00.propagation_after_user_priority_0.mlir
// FILES-NOT: priority_1

sdy.mesh @m = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}], replicated={"b"}>}
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}p0, {"b"}p1]>}) -> tensor<8x8xf32> {
  // CHECK-NEXT: stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a", ?}, {?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>}
  %0 = stablehlo.sine %x : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
