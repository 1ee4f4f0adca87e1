"""Results for people: plain data, and tables made of it. Pure Python."""
