"""Partitioning: from shardings to explicit communication."""
