"""Export: from a propagated module to one that a partitioner accepts."""
