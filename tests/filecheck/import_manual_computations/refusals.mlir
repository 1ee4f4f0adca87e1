// RUN: sdy_opt %s -split-input-file -verify-diagnostics -pyshardy-import-manual-computations

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'stablehlo.custom_call' op is a @xla.sdy.LocalToGlobalShape without a call of @xla.sdy.manual_computation_body... beside it}}
  %0 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func private @xla.sdy.manual_computation_body(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'func.call' op calls the body of a manual computation, and needs exactly one @xla.sdy.GlobalToLocalShape beside it}}
  %0 = call @xla.sdy.manual_computation_body(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func private @xla.sdy.manual_computation_body() -> tensor<8xf32> {
  %0 = stablehlo.constant dense<1.0> : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @xla.sdy.manual_computation_body() : () -> tensor<8xf32>
  // expected-error@+1 {{'stablehlo.custom_call' op has operands that the body of the manual computation does not return}}
  %1:2 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%0, %x) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %1#0 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func private @xla.sdy.manual_computation_body(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'stablehlo.custom_call' op has operand 0 without a sharding, and needs a @Sharding before it}}
  %0 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @xla.sdy.manual_computation_body(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%1) : (tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func private @xla.sdy.manual_computation_body(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> tensor<8xf32> {
  %0 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @xla.sdy.manual_computation_body(%0) : (tensor<8xf32>) -> tensor<8xf32>
  // expected-error@+1 {{'stablehlo.custom_call' op has 0 shardings, and needs 1, one per value}}
  %2 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%1) : (tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func private @xla.sdy.manual_computation_body(%x: tensor<8xf32>) {
  return
}
func.func @main(%x: tensor<8xf32>) {
  // expected-error@+1 {{'stablehlo.custom_call' op has xla.sdy.in_shardings = [x], which cannot be read}}
  %0 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%x) {mhlo.frontend_attributes = {xla.sdy.in_shardings = "[x]"}} : (tensor<8xf32>) -> tensor<8xf32>
  call @xla.sdy.manual_computation_body(%0) : (tensor<8xf32>) -> ()
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func private @xla.sdy.manual_computation_body(%x: tensor<8xf32>) {
  return
}
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
  // expected-error@+1 {{'stablehlo.custom_call' op has xla.sdy.manual_axes = x, which cannot be read}}
  %0 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%x) {mhlo.frontend_attributes = {xla.sdy.manual_axes = "x"}} : (tensor<8xf32>) -> tensor<8xf32>
  call @xla.sdy.manual_computation_body(%0) : (tensor<8xf32>) -> ()
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func private @xla.sdy.manual_computation_body(%x: tensor<4xf32>) {
  return
}
func.func @main(%x: tensor<8xf32>) {
  %0 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%x) {mhlo.frontend_attributes = {
    xla.sdy.manual_axes = "#sdy<manual_axes{\22z\22}>", xla.sdy.in_shardings = "#sdy.sharding_per_value<[<@mesh, [{\22x\22}]>]>"
  }} : (tensor<8xf32>) -> tensor<4xf32>
  // expected-error@+1 {{'sdy.manual_computation' op has the manual axis "z", and needs axes of the mesh <["x"=2]>}}
  call @xla.sdy.manual_computation_body(%0) : (tensor<4xf32>) -> ()
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func private @xla.sdy.manual_computation_body(%x: tensor<4xf32>) {
  return
}
func.func @main(%x: tensor<8xf32>) {
  %0 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%x) {mhlo.frontend_attributes = {
    xla.sdy.manual_axes = "#sdy<manual_axes{\22x\22}>", xla.sdy.in_shardings = "#sdy.sharding_per_value<[<@other, [{\22x\22}]>]>"
  }} : (tensor<8xf32>) -> tensor<4xf32>
  // expected-error@+1 {{'sdy.manual_computation' op has a sharding that does not fit: looking up the mesh of}}
  call @xla.sdy.manual_computation_body(%0) : (tensor<4xf32>) -> ()
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func private @xla.sdy.manual_computation_body(%x: tensor<4xf32>) {
  return
}
func.func @main(%x: tensor<8xf32>) {
  %0 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%x) {mhlo.frontend_attributes = {
    xla.sdy.manual_axes = "#sdy<manual_axes{\22x\22}>", xla.sdy.in_shardings = "#sdy.sharding_per_value<[<@mesh, [{\22z\22}]>]>"
  }} : (tensor<8xf32>) -> tensor<4xf32>
  // expected-error@+1 {{'sdy.manual_computation' op has a sharding that does not fit: checking the sharding <@mesh, [{"z"}]>: got}}
  call @xla.sdy.manual_computation_body(%0) : (tensor<4xf32>) -> ()
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func private @xla.sdy.manual_computation_body(%x: tensor<4xf32>) {
  return
}
func.func @main(%x: tensor<8xf32>) {
  %0 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%x) {mhlo.frontend_attributes = {
    xla.sdy.manual_axes = "#sdy<manual_axes{\22x\22}>", xla.sdy.in_shardings = "#sdy.sharding_per_value<[<@mesh, [{\22x\22}, {}]>]>"
  }} : (tensor<8xf32>) -> tensor<4xf32>
  // expected-error@+1 {{'sdy.manual_computation' op has a sharding that does not fit: checking the sharding <@mesh, [{"x"}, {}]>: got 2 dimensions}}
  call @xla.sdy.manual_computation_body(%0) : (tensor<4xf32>) -> ()
  return
}
