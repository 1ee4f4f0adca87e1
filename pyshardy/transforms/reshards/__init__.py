"""Which operand needs which sharding, and the reshards, all-reduces and constants that give it."""
