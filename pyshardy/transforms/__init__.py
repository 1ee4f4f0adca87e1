"""Building blocks of passes. Each package holds one kind of change to a program; nothing here is a pass."""
