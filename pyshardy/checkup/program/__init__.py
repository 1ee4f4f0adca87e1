"""What is known of a program: weights with their optimizer state, what is multiplied with them, and their paths."""
