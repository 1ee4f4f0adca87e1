"""Rewriting of ops until nothing changes, and the patterns that several passes use."""
