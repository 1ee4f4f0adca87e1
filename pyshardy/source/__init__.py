"""The user's source files: who owns a place in them, and the values that their lines compute."""
