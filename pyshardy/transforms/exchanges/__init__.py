"""Ops that need data from other shards: they exchange it or, where that is impossible, are replicated."""
