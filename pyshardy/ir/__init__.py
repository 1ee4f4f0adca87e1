"""The MLIR edge: modules to plain Python objects and back. The lowest rank that imports `jaxlib.mlir`."""
