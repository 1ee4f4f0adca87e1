// RUN: sdy_opt %s -split-input-file -verify-diagnostics -pyshardy-import-frontend-attributes

// expected-error@+1 {{'builtin.module' op has xla.sdy.meshes = 5, and needs names with meshes in braces}}
module attributes {mhlo.frontend_attributes = {xla.sdy.meshes = "5"}} {
}

// -----

// expected-error@+1 {{'builtin.module' op has two meshes @mesh: <["x"=2]> as an op, <["y"=2]> in xla.sdy.meshes}}
module attributes {mhlo.frontend_attributes = {xla.sdy.meshes = "{mesh = #sdy.mesh<[\22y\22=2]>}"}} {
  sdy.mesh @mesh = <["x"=2]>
}

// -----

module attributes {mhlo.frontend_attributes = {xla.sdy.meshes = "{mesh = #sdy.mesh<[\22y\22=2]>}"}} {
  // expected-error@+1 {{'func.func' op has xla.sdy.sharding = #sdy.sharding<@mesh>, which cannot be read}}
  func.func @main(%x: tensor<8xf32> {mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding<@mesh>"}}) {
    return
  }
}

// -----

// expected-error@+1 {{'builtin.module' op has xla.sdy.meshes = {mesh = #sdy.mesh<["y"=2]>}\FF, which is not UTF-8}}
module attributes {mhlo.frontend_attributes = {xla.sdy.meshes = "{mesh = #sdy.mesh<[\22y\22=2]>}\FF"}} {
}

// -----

module attributes {mhlo.frontend_attributes = {xla.sdy.meshes = "{mesh = #sdy.mesh<[\22y\22=2]>}"}} {
  // expected-error@+1 {{'func.func' op has a sharding that does not fit: checking the sharding <@mesh, [{"x"}]>: got}}
  func.func @main(%x: tensor<8xf32> {mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding<@mesh, [{\22x\22}]>"}}) {
    return
  }
}

// -----

module attributes {mhlo.frontend_attributes = {xla.sdy.meshes = "{mesh = #sdy.mesh<[\22y\22=2]>}"}} {
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    // expected-error@+1 {{'stablehlo.custom_call' op has 2 shardings, and needs 1, one per value}}
    %0 = stablehlo.custom_call @Sharding(%x) {mhlo.frontend_attributes = {
      xla.sdy.sharding = "#sdy.sharding_per_value<[<@mesh, [{}]>, <@mesh, [{}]>]>"
    }} : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
