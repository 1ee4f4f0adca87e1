// RUN: sdy_opt %s -verify-diagnostics -sdy-convert-global-to-local='replica-count=2 partition-count=2'

// NEWER: there were no such options
// expected-error@+1 {{is for several replicas and several partitions; one of the two counts must be 1}}
module {
}
