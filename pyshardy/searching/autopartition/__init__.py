"""The search for shardings of a program's inputs that make it fast, on plain data."""
