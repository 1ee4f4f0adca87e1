"""The search for shardings, and the plans that it finds."""
