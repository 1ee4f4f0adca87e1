"""Resharding: shardings that let an op run without communication, and collectives to reach them. Pure Python."""
