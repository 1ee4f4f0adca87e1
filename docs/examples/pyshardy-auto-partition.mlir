sdy.mesh @mesh = <["data"=4, "model"=2]>

func.func @main(%x: tensor<8192x1024xbf16>, %w: tensor<1024x4096xbf16>) -> tensor<8192x4096xbf16> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<8192x1024xbf16>, tensor<1024x4096xbf16>) -> tensor<8192x4096xbf16>
  return %0 : tensor<8192x4096xbf16>
}
