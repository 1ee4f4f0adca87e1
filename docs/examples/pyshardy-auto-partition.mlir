sdy.mesh @mesh = <["data"=4, "model"=2]>

func.func @main(%x: tensor<1024x256xbf16>, %w: tensor<256x1024xbf16>) -> tensor<1024x1024xbf16> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<1024x256xbf16>, tensor<256x1024xbf16>) -> tensor<1024x1024xbf16>
  return %0 : tensor<1024x1024xbf16>
}
