"""Propagation: four faces of the one core."""
