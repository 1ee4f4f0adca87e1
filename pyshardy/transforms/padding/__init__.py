"""Pads tensors to multiples of their shard counts: one file per family of ops; `table.py` maps ops to functions."""
