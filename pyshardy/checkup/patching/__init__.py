"""Changes of the user's source, as diffs: where it writes shardings, and other ones."""
