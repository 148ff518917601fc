"""A custom mesh: packets through it, and what is found out of it."""
