"""Ops on tensors that are padded to be divisible: one file per family, `table.py` says which handles what."""
