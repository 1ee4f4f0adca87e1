"""Estimates the cost of the per-device program from shardings alone, without building that program."""
