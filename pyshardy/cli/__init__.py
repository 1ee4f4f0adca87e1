"""The command line: `pyshardy` and `pyshardy-opt`."""
