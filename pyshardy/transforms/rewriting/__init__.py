"""Greedy rewriting, and the patterns that several passes use."""
