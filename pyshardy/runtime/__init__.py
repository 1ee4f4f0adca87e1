"""Running propagated programs on the devices that JAX sees."""
