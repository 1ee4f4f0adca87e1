// RUN: sdy_opt %s -verify-diagnostics -sdy-manual-axes-cleanup

sdy.mesh @mesh = <["p"=2]>

func.func @no_shardings() {
  // expected-error@+1 {{'sdy.manual_computation' op has manual axes and a body that is not empty, but neither in-shardings nor out-shardings}}
  sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={"p"} () {
    %0 = stablehlo.constant dense<0.0> : tensor<8xf32>
    sdy.return
  } : () -> ()
  return
}
