"""Search for shardings of the inputs of a program that make it fast, on plain data."""
