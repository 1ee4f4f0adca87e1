"""Propagation: the propagation passes of Shardy, and the search for input shardings."""
