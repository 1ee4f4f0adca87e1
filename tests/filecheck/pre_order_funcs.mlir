// RUN: sdy_opt %s -split-input-file -sdy-pre-order-funcs | FileCheck %s

// Callers come before what they call, and of two callees the one called last comes first. What is no function, or has no
// body, keeps its place in front.
// CHECK: func.func private @declared
// CHECK-NEXT: sdy.mesh @mesh
// CHECK: func.func @zz
// CHECK: func.func @main
// CHECK: func.func private @cnd2
// CHECK: func.func private @tail
// CHECK: func.func private @bdy
// CHECK: func.func private @cnd(
// CHECK: func.func @aa
func.func @aa() {
  return
}
func.func private @declared(tensor<i32>)
func.func @main(%arg0: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.while(%iterArg = %arg0) : tensor<i32>
  cond {
    %2 = func.call @cnd(%iterArg) : (tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %2 = func.call @bdy(%iterArg) : (tensor<i32>) -> tensor<i32>
    stablehlo.return %2 : tensor<i32>
  }
  %1 = call @tail(%0) : (tensor<i32>) -> tensor<i32>
  call @declared(%1) : (tensor<i32>) -> ()
  %2 = call @cnd2(%1) : (tensor<i32>) -> tensor<i1>
  return %1 : tensor<i32>
}
func.func private @tail(%arg0: tensor<i32>) -> tensor<i32> {
  %0 = call @bdy(%arg0) : (tensor<i32>) -> tensor<i32>
  return %0 : tensor<i32>
}
sdy.mesh @mesh = <["x"=2]>
func.func private @bdy(%arg0: tensor<i32>) -> tensor<i32> {
  return %arg0 : tensor<i32>
}
func.func private @cnd2(%arg0: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare LT, %arg0, %arg0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func private @cnd(%arg0: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %arg0, %arg0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func @zz() {
  return
}

// -----

// A function that is only named in an attribute is not called.
// CHECK: func.func private @named_only
// CHECK: func.func @main
// CHECK: func.func private @called
func.func private @called(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @called(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.composite "my.op" %0 {decomposition = @named_only} : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @named_only(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}

// -----

func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}
