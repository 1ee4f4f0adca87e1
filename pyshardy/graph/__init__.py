"""A program as flat, integer-indexed tuples: what propagation and everything after it look at. Pure Python."""
