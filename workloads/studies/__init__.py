"""Studies: published results reproduced row by row, and what follows from them."""
