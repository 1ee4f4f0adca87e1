// RUN: sdy_opt %s -sdy-add-func-data-flow-edges -sdy-add-func-data-flow-edges -sdy-basic-propagate -verify-diagnostics

sdy.mesh @m = <["a"=2]>

func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}]>}) -> tensor<8xf32> {
  // expected-error @+1 {{'sdy.func_data_flow_edge' op is on a value of 'sdy.func_data_flow_edge', which is neither a call nor a function}}
  %0 = call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.sine %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
