"""Asks the compilers of accelerators, ahead of time: XLA for TPUs, GPUs and CPUs, in a process of its own."""
