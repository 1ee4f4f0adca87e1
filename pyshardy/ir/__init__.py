"""The MLIR edge: modules in and out of plain Python objects. The first rank that imports `jaxlib.mlir`."""
