"""The results of `propagate` and `partition`, which continue from known work and share one surface."""
