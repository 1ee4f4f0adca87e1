"""Programs in: from files and text, and from JAX."""
