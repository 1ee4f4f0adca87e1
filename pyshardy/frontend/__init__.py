"""Loads programs from files, text and JAX."""
