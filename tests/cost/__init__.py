"""Estimates of cost beside what XLA says of the same programs."""
