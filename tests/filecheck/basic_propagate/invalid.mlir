// RUN: sdy_opt %s -split-input-file -verify-diagnostics -sdy-basic-propagate

func.func @dynamic(%arg0: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error@+1 {{'stablehlo.sine' op has a result of type tensor<?xf32>: propagation does not support a shape that is not static}}
  %0 = stablehlo.sine %arg0 : tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func @pair(%arg0: tensor<8xf32>) -> tuple<tensor<8xf32>> {
  // expected-error@+1 {{'stablehlo.tuple' op has a result of type tuple<tensor<8xf32>>: propagation does not support a tuple}}
  %0 = stablehlo.tuple %arg0 : tuple<tensor<8xf32>>
  return %0 : tuple<tensor<8xf32>>
}

// -----

// The first offender in the order of completion is named: what is inside an op comes before it.
func.func @inner_first(%arg0: tensor<?xf32>, %arg1: tensor<i32>) -> tensor<?xf32> {
  %0 = "stablehlo.case"(%arg1) ({
    // expected-error@+1 {{'stablehlo.cosine' op has a result of type tensor<?xf32>}}
    %1 = stablehlo.cosine %arg0 : tensor<?xf32>
    stablehlo.return %1 : tensor<?xf32>
  }) : (tensor<i32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Arguments alone may have any shape.
func.func @arguments(%arg0: tensor<?xf32>, %arg1: tuple<tensor<8xf32>>) {
  return
}

// -----

// DIFFERS: the reference ends its process without a main function.
// expected-error@unknown {{looking for the main function: got the functions @one, @two, needed a function named @main, or exactly one that is public}}
func.func @one() {
  return
}
func.func @two() {
  return
}

// -----

// DIFFERS: the reference ends its process without a function.
// expected-error@unknown {{looking for the main function: got a module without functions}}
sdy.mesh @mesh = <["x"=2]>

// -----

// DIFFERS: the reference ends its process if a value is in two groups; import merges such groups.
func.func @two_groups(%arg0: tensor<8xf32>) {
  sdy.sharding_group %arg0 group_id=0 : tensor<8xf32>
  // expected-error@+1 {{'sdy.sharding_group' op puts a value into a second sharding group; merge groups that share a value}}
  sdy.sharding_group %arg0 group_id=1 : tensor<8xf32>
  return
}

// -----

// Members with different shardings are freed.
sdy.mesh @mesh = <["p"=2]>
// expected-warning@+1 {{the members of sharding group 0 have different shardings; open constraints replace them in the group}}
func.func @conflict(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p"}]>}) -> tensor<8x8xf32> {
  sdy.sharding_group %arg0 group_id=0 : tensor<8x8xf32>
  sdy.sharding_group %arg1 group_id=0 : tensor<8x8xf32>
  %0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// What has no rule is named once, with the number of such ops.
func.func @unknown(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // expected-warning@+1 {{no sharding rule is known for custom call @mystery (2 in the module): nothing propagates through it}}
  %0 = stablehlo.custom_call @mystery(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.custom_call @mystery(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// DIFFERS: the reference ends its process
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.sine %arg0 : tensor<8xf32>
  // expected-error@+1 {{'sdy.data_flow_edge' op is on a value of 'stablehlo.sine', an op without data-flow edges}}
  %1 = sdy.data_flow_edge %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}
