// RUN: sdy_opt %s -verify-diagnostics -sdy-reshard-to-collectives

sdy.mesh @mesh = <["a"=16, "b"=2]>
func.func @unreduced(%arg0: tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) -> tensor<16x64xf32> {
  // expected-error@+1 {{got axis "b", which shards a dimension before and must become unreduced, needed sdy.sharded_to_unreduced for that}}
  %0 = sdy.reshard %arg0 <@mesh, [{"a"}, {}], unreduced={"b"}> : tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}
