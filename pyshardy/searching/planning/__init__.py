"""One search over one mesh: the order of estimates, the constraints, and the texts of the plan."""
