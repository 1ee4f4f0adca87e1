// RUN: sdy_opt %s -pyshardy-import-hlo-shardings='mesh=data=2,model=4' | FileCheck %s

// The user names the axes; a tiling may be over a part of one.
// CHECK: func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["data"=2, "model"=4]>, [{"data", "model":(1)2}, {}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["data"=2, "model"=4]>, [{}, {"model":(2)2, "data"}]>})
func.func @main(%a: tensor<8x8xf32> {mhlo.sharding = "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"},
                %b: tensor<8x8xf32> {mhlo.sharding = "{devices=[1,4,2]<=[2,2,2]T(2,0,1) last_tile_dim_replicate}"}) {
  return
}
