// RUN: sdy_opt %s -verify-diagnostics -sdy-flatten-call-graph
// RUN: sdy_opt %s -verify-diagnostics -sdy-import-func-calls
// RUN: sdy_opt %s -verify-diagnostics -sdy-propagation-pipeline
// UNDEFINED: the reference copies until the memory is full.

func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f0(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @f0(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f1(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @f1(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = call @f1(%1) : (tensor<8xf32>) -> tensor<8xf32>
  %3 = call @f1(%2) : (tensor<8xf32>) -> tensor<8xf32>
  %4 = call @f1(%3) : (tensor<8xf32>) -> tensor<8xf32>
  %5 = call @f1(%4) : (tensor<8xf32>) -> tensor<8xf32>
  %6 = call @f1(%5) : (tensor<8xf32>) -> tensor<8xf32>
  %7 = call @f1(%6) : (tensor<8xf32>) -> tensor<8xf32>
  return %7 : tensor<8xf32>
}
// expected-error@+1 {{'func.func' op is one of the functions that call each other so often that one copy per call would add 9287313 ops; at most 1000000 are copied; let a loop repeat the calls, or call the functions less often}}
func.func private @f1(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f2(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @f2(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = call @f2(%1) : (tensor<8xf32>) -> tensor<8xf32>
  %3 = call @f2(%2) : (tensor<8xf32>) -> tensor<8xf32>
  %4 = call @f2(%3) : (tensor<8xf32>) -> tensor<8xf32>
  %5 = call @f2(%4) : (tensor<8xf32>) -> tensor<8xf32>
  %6 = call @f2(%5) : (tensor<8xf32>) -> tensor<8xf32>
  %7 = call @f2(%6) : (tensor<8xf32>) -> tensor<8xf32>
  return %7 : tensor<8xf32>
}
func.func private @f2(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f3(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @f3(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = call @f3(%1) : (tensor<8xf32>) -> tensor<8xf32>
  %3 = call @f3(%2) : (tensor<8xf32>) -> tensor<8xf32>
  %4 = call @f3(%3) : (tensor<8xf32>) -> tensor<8xf32>
  %5 = call @f3(%4) : (tensor<8xf32>) -> tensor<8xf32>
  %6 = call @f3(%5) : (tensor<8xf32>) -> tensor<8xf32>
  %7 = call @f3(%6) : (tensor<8xf32>) -> tensor<8xf32>
  return %7 : tensor<8xf32>
}
func.func private @f3(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f4(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @f4(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = call @f4(%1) : (tensor<8xf32>) -> tensor<8xf32>
  %3 = call @f4(%2) : (tensor<8xf32>) -> tensor<8xf32>
  %4 = call @f4(%3) : (tensor<8xf32>) -> tensor<8xf32>
  %5 = call @f4(%4) : (tensor<8xf32>) -> tensor<8xf32>
  %6 = call @f4(%5) : (tensor<8xf32>) -> tensor<8xf32>
  %7 = call @f4(%6) : (tensor<8xf32>) -> tensor<8xf32>
  return %7 : tensor<8xf32>
}
func.func private @f4(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f5(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @f5(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = call @f5(%1) : (tensor<8xf32>) -> tensor<8xf32>
  %3 = call @f5(%2) : (tensor<8xf32>) -> tensor<8xf32>
  %4 = call @f5(%3) : (tensor<8xf32>) -> tensor<8xf32>
  %5 = call @f5(%4) : (tensor<8xf32>) -> tensor<8xf32>
  %6 = call @f5(%5) : (tensor<8xf32>) -> tensor<8xf32>
  %7 = call @f5(%6) : (tensor<8xf32>) -> tensor<8xf32>
  return %7 : tensor<8xf32>
}
func.func private @f5(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f6(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @f6(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = call @f6(%1) : (tensor<8xf32>) -> tensor<8xf32>
  %3 = call @f6(%2) : (tensor<8xf32>) -> tensor<8xf32>
  %4 = call @f6(%3) : (tensor<8xf32>) -> tensor<8xf32>
  %5 = call @f6(%4) : (tensor<8xf32>) -> tensor<8xf32>
  %6 = call @f6(%5) : (tensor<8xf32>) -> tensor<8xf32>
  %7 = call @f6(%6) : (tensor<8xf32>) -> tensor<8xf32>
  return %7 : tensor<8xf32>
}
func.func private @f6(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f7(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @f7(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = call @f7(%1) : (tensor<8xf32>) -> tensor<8xf32>
  %3 = call @f7(%2) : (tensor<8xf32>) -> tensor<8xf32>
  %4 = call @f7(%3) : (tensor<8xf32>) -> tensor<8xf32>
  %5 = call @f7(%4) : (tensor<8xf32>) -> tensor<8xf32>
  %6 = call @f7(%5) : (tensor<8xf32>) -> tensor<8xf32>
  %7 = call @f7(%6) : (tensor<8xf32>) -> tensor<8xf32>
  return %7 : tensor<8xf32>
}
func.func private @f7(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.negate %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
