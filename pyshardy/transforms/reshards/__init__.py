"""The shardings that operands need, and the reshards, all-reduces and constants that provide them."""
