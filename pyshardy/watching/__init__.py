"""Runs a script unchanged, and analyses the programs that JAX compiles in it."""
