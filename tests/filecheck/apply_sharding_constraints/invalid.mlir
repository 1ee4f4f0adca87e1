// RUN: sdy_opt %s -split-input-file -verify-diagnostics -sdy-apply-sharding-constraints

// DIFFERS: the reference ends its process without a main function.
// expected-error@unknown {{looking for the main function: got the functions @one, @two}}
func.func @one() {
  return
}
func.func @two() {
  return
}
