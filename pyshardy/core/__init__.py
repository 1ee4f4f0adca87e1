"""Values: meshes, axes, shardings and their algebra. Pure Python, no MLIR, no JAX."""
