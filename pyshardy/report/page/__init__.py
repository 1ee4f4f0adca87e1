"""A result as one page: first as plain data, then as a file that a browser opens without a network."""
