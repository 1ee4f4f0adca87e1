"""Whole programs, from JAX to numbers."""
