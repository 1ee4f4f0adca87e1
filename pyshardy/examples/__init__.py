"""Example programs, also importable as `pyshardy.examples`."""
