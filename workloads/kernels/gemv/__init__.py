"""Products of a vector and a matrix."""
