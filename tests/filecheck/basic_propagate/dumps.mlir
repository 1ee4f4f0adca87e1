// RUN: rm -rf %t && mkdir -p %t && echo none > %t/kept
// RUN: sdy_opt %s -sdy-basic-propagate='module-dump-directory=%t' | FileCheck %s
// RUN: sdy_opt %s -sdy-aggressive-propagate='module-dump-directory=%t' | FileCheck %s
// RUN: sdy_opt %s -sdy-op-priority-propagate='module-dump-directory=%t' | FileCheck %s
// RUN: ls %t | FileCheck %s --check-prefix=FILES

// Only the pass that takes turns by user priority writes modules.
// FILES-NOT: mlir
// FILES: kept
// FILES-NOT: mlir

sdy.mesh @m = <["a"=2]>

// CHECK: stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a", ?}]>]>}
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.sine %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
