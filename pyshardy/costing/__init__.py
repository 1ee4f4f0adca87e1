"""Estimates the cost of a per-device program on hardware that need not be present: time, FLOPs, bytes, peak memory."""
