"""Sharding rules: which dimensions of an op's operands and results belong together. Pure Python."""
