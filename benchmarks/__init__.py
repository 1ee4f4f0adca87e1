"""Benchmarks: pyshardy against the reference, in one process, on named workloads."""
