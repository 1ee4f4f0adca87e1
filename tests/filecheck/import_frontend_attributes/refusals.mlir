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
