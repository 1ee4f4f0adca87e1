// RUN: sdy_opt %s -split-input-file -verify-diagnostics -sdy-per-instruction-partitioning='filter=func=f'

// NEWER: there was no such pass
// DIFFERS: the reference ends its process
// expected-error@below {{lacks the function @f, whose ops would be partitioned; it has @main}}
module {
  func.func @main() {
    return
  }
}
