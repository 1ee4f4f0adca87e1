"""Helpers that several tests share: the reference passes, comparisons, programs."""
