"""Resharding: which shardings make an op run without communication. Pure Python."""
