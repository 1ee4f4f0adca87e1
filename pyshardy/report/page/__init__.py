"""A result as a page: plain data first, then one HTML file that needs no network."""
