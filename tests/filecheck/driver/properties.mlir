// RUN: sdy_opt %s -verify-diagnostics -allow-unregistered-dialect -symbol-dce

func.func @main() {
  // expected-error@+1 {{'t.op' op of an unknown dialect has properties, needed only attributes: {...} instead of <{...}>}}
  "t.op"() <{a = 1 : i32}> : () -> ()
  return
}
