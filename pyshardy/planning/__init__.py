"""One search over one mesh: the order of estimates, the constraints, and what is said of the plan."""
