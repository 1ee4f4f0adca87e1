"""Explanations of shardings, in sentences and as data."""
