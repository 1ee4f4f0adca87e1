"""Example programs that the command line knows by name."""
