"""What passes are made of: each room holds one kind of change to a program. Nothing here is a pass."""
