"""Shardy in Python: sharding propagation that explains itself."""
